/* Byte-pair learning with counts that are kept up to date.
 *
 * Every word is a run of symbols (token ids). For each adjacent pair of symbols the number of times
 * it occurs and the words it occurs in are known. To merge a pair only its words are visited; each
 * occurrence takes its two outer neighbours' pairs down and adds two pairs with the new symbol. A
 * pair that does not contain the new symbol can only become rarer, so a heap with counts that are
 * too high at worst gives the most frequent pair: what is popped is compared with the count of now,
 * and put back if that is lower. */
#include "text/learn.h"

#include <stdlib.h>
#include <string.h>

#include "text/hash.h"

typedef struct Pair {
    uint64_t key; /* left << 32 | right */
    int64_t count;
    uint32_t *words; /* those that contain it, or did; each once */
    size_t word_count, word_capacity;
} Pair;

typedef struct Candidate {
    int64_t count;
    uint64_t key;
    uint32_t pair;
} Candidate;

typedef struct Learner {
    uint32_t *symbols; /* of all words, end to end */
    size_t *starts;    /* of each word; one more at the end */
    uint32_t *lengths; /* in symbols, now */
    int64_t *counts;   /* of each word */
    size_t words;
    Pair *pairs;
    size_t pair_count, pair_capacity;
    uint32_t *places; /* hash table from key to index in `pairs`; UINT32_MAX: free */
    size_t mask;
    Candidate *heap;
    size_t heap_size, heap_capacity;
    size_t fresh; /* pairs from here on are not in the heap yet */
} Learner;

static bool index_pairs(Learner *learner, size_t places, Error *error) {
    uint32_t *table = allocate(places, sizeof *table, error);
    if (!table) return false;
    memset(table, 0xFF, places * sizeof *table);
    for (size_t i = 0; i < learner->pair_count; i++) {
        size_t place = hash_mix(learner->pairs[i].key) & (places - 1);
        while (table[place] != UINT32_MAX) place = (place + 1) & (places - 1);
        table[place] = (uint32_t)i;
    }
    free(learner->places);
    learner->places = table;
    learner->mask = places - 1;
    return true;
}

/* The pair of two symbols, made when it is new. Pointers to other pairs may move. */
static Pair *pair_of(Learner *learner, uint32_t left, uint32_t right, Error *error) {
    uint64_t key = (uint64_t)left << 32 | right;
    size_t place = hash_mix(key) & learner->mask;
    for (; learner->places[place] != UINT32_MAX; place = (place + 1) & learner->mask) {
        Pair *pair = &learner->pairs[learner->places[place]];
        if (pair->key == key) return pair;
    }
    if (!reserve(&learner->pairs, &learner->pair_capacity, learner->pair_count + 1, sizeof(Pair),
                 error))
        return NULL;
    learner->places[place] = (uint32_t)learner->pair_count;
    learner->pairs[learner->pair_count++] = (Pair){.key = key};
    if (2 * learner->pair_count > learner->mask &&
        !index_pairs(learner, 2 * (learner->mask + 1), error))
        return NULL;
    return &learner->pairs[learner->pair_count - 1];
}

/* Adds `count` occurrences of a pair in a word. */
static bool add_pair(Learner *learner, uint32_t left, uint32_t right, int64_t count, uint32_t word,
                     Error *error) {
    Pair *pair = pair_of(learner, left, right, error);
    if (!pair) return false;
    pair->count += count;
    /* Words are visited one after another, so a repeated one is the last. */
    if (pair->word_count && pair->words[pair->word_count - 1] == word) return true;
    if (!reserve(&pair->words, &pair->word_capacity, pair->word_count + 1, sizeof word, error))
        return false;
    pair->words[pair->word_count++] = word;
    return true;
}

static void take_pair(Learner *learner, uint32_t left, uint32_t right, int64_t count) {
    Error never; /* the pair is there */
    Pair *pair = pair_of(learner, left, right, &never);
    if (pair) pair->count -= count;
}

static bool before(const Candidate *a, const Candidate *b) {
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static bool push(Learner *learner, uint32_t index, Error *error) {
    const Pair *pair = &learner->pairs[index];
    Candidate candidate = {.count = pair->count, .key = pair->key, .pair = index};
    if (pair->count <= 0) return true;
    if (!reserve(&learner->heap, &learner->heap_capacity, learner->heap_size + 1, sizeof candidate,
                 error))
        return false;
    Candidate *heap = learner->heap;
    size_t at = learner->heap_size++;
    for (; at > 0 && before(&candidate, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = candidate;
    return true;
}

static Candidate pop(Learner *learner) {
    Candidate *heap = learner->heap, top = heap[0], last = heap[--learner->heap_size];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < learner->heap_size; at = child) {
        if (child + 1 < learner->heap_size && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &last)) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static bool push_fresh(Learner *learner, Error *error) {
    for (; learner->fresh < learner->pair_count; learner->fresh++)
        if (!push(learner, (uint32_t)learner->fresh, error)) return false;
    return true;
}

/* The most frequent pair, or UINT32_MAX when none is left; UINT32_MAX - 1 on failure. */
static uint32_t best_pair(Learner *learner, Error *error) {
    while (learner->heap_size) {
        Candidate top = pop(learner);
        if (learner->pairs[top.pair].count == top.count) return top.pair;
        if (!push(learner, top.pair, error)) return UINT32_MAX - 1;
    }
    return UINT32_MAX;
}

/* Replaces a pair in one word, from left to right. */
static bool merge_word(Learner *learner, uint32_t word, uint32_t left, uint32_t right,
                       uint32_t result, Error *error) {
    uint32_t *symbols = learner->symbols + learner->starts[word];
    size_t length = learner->lengths[word], kept = 0;
    int64_t count = learner->counts[word];
    for (size_t i = 0; i < length; i++) {
        if (i + 1 == length || symbols[i] != left || symbols[i + 1] != right) {
            symbols[kept++] = symbols[i];
            continue;
        }
        if (kept > 0) {
            take_pair(learner, symbols[kept - 1], left, count);
            if (!add_pair(learner, symbols[kept - 1], result, count, word, error)) return false;
        }
        if (i + 2 < length) {
            take_pair(learner, right, symbols[i + 2], count);
            if (!add_pair(learner, result, symbols[i + 2], count, word, error)) return false;
        }
        symbols[kept++] = result;
        i++;
    }
    learner->lengths[word] = (uint32_t)kept;
    return true;
}

static bool merge_pair(Learner *learner, uint32_t index, Merge *merge, uint32_t result,
                       Error *error) {
    Pair *pair = &learner->pairs[index];
    uint32_t *words = pair->words;
    size_t word_count = pair->word_count;
    *merge = (Merge){
        .left = (uint32_t)(pair->key >> 32), .right = (uint32_t)pair->key, .result = result};
    pair->words = NULL;
    pair->word_count = pair->word_capacity = 0;
    bool done = true;
    for (size_t i = 0; done && i < word_count; i++)
        done = merge_word(learner, words[i], merge->left, merge->right, result, error);
    learner->pairs[index].count = 0; /* its overlaps ("aaa") were only partly taken down */
    free(words);
    return done && push_fresh(learner, error);
}

/* Turns words of two bytes or more into symbols. */
static bool take_words(Learner *learner, WordCounts *words, Error *error) {
    learner->symbols = allocate(words->bytes.size, sizeof *learner->symbols, error);
    learner->starts =
        learner->symbols ? allocate(words->used, sizeof *learner->starts, error) : NULL;
    learner->lengths =
        learner->starts ? allocate(words->used, sizeof *learner->lengths, error) : NULL;
    learner->counts =
        learner->lengths ? allocate(words->used, sizeof *learner->counts, error) : NULL;
    if (!learner->counts) return false;
    size_t used = 0;
    for (size_t i = 0; words->places && i <= words->mask; i++) {
        const Word *word = &words->places[i];
        if (word->size < 2) continue;
        learner->starts[learner->words] = used;
        learner->lengths[learner->words] = word->size;
        learner->counts[learner->words++] = word->count;
        for (size_t j = 0; j < word->size; j++)
            learner->symbols[used++] = words->bytes.data[word->start + j];
    }
    word_counts_free(words);
    return true;
}

static bool count_pairs(Learner *learner, Error *error) {
    if (!index_pairs(learner, 1 << 16, error)) return false;
    for (uint32_t word = 0; word < learner->words; word++) {
        const uint32_t *symbols = learner->symbols + learner->starts[word];
        for (size_t i = 0; i + 1 < learner->lengths[word]; i++)
            if (!add_pair(learner, symbols[i], symbols[i + 1], learner->counts[word], word, error))
                return false;
    }
    return push_fresh(learner, error);
}

static void learner_free(Learner *learner) {
    for (size_t i = 0; i < learner->pair_count; i++) free(learner->pairs[i].words);
    free(learner->pairs);
    free(learner->places);
    free(learner->heap);
    free(learner->symbols);
    free(learner->starts);
    free(learner->lengths);
    free(learner->counts);
}

size_t learn_merges(WordCounts *words, Merge *merges, size_t count, TrainerProgress *progress,
                    void *context, Error *error) {
    Learner learner = {0};
    bool done = take_words(&learner, words, error) && count_pairs(&learner, error);
    size_t made = 0;
    while (done && made < count) {
        uint32_t best = best_pair(&learner, error);
        if (best == UINT32_MAX) break;
        done = best < learner.pair_count &&
               merge_pair(&learner, best, &merges[made], (uint32_t)(256 + made), error);
        made++;
        if (progress && made % 64 == 0) progress(context, (uint32_t)made, (uint32_t)count);
    }
    learner_free(&learner);
    return done ? made : SIZE_MAX;
}
