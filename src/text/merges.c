#include "text/merges.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/hash.h"

enum { SHORT_PIECE = 64 }; /* up to here a plain search for the lowest rank is faster than a heap */

static const MergeEntry no_merge = {.rank = UINT32_MAX};

static inline uint64_t pair_of(uint32_t left, uint32_t right) {
    return (uint64_t)left << 32 | right;
}

/* Most pairs cannot be merged. A filter of so many bits for each place of the table, which is far
 * larger than the cache, tells nearly all of them without a look at it. */
enum { FILTER_BITS = 4 };

static inline size_t filter_bit(const MergeTable *table, uint64_t hash) {
    return hash >> 32 & (FILTER_BITS * (table->mask + 1) - 1);
}

static bool create(MergeTable *table, size_t count, Error *error) {
    size_t places = 16;
    while (places < 2 * count) places *= 2;
    *table = (MergeTable){.mask = places - 1};
    table->entries = allocate(places, sizeof *table->entries, error);
    table->filter = table->entries ? allocate(places * FILTER_BITS / 8, 1, error) : NULL;
    if (!table->filter) return false;
    memset(table->entries, 0xFF, places * sizeof *table->entries);
    return true;
}

static void insert(MergeTable *table, const MergeEntry *merge) {
    uint64_t hash = hash_mix(merge->pair);
    size_t place = hash & table->mask, bit = filter_bit(table, hash);
    table->filter[bit / 8] |= (uint8_t)(1 << bit % 8);
    while (table->entries[place].pair != merge->pair && table->entries[place].pair != UINT64_MAX)
        place = (place + 1) & table->mask;
    if (table->entries[place].pair == UINT64_MAX) table->used++;
    table->entries[place] = *merge;
}

static bool grow(MergeTable *table, size_t count, Error *error) {
    MergeTable grown;
    if (!create(&grown, 2 * count, error)) {
        merge_table_free(&grown);
        return false;
    }
    for (size_t i = 0; i <= table->mask; i++)
        if (table->entries[i].pair != UINT64_MAX) insert(&grown, &table->entries[i]);
    merge_table_free(table);
    *table = grown;
    return true;
}

bool merge_table_create(MergeTable *table, const Merge *merges, size_t count, Error *error) {
    return create(table, count, error) && merge_table_add(table, merges, 0, count, error);
}

bool merge_table_add(MergeTable *table, const Merge *merges, size_t from, size_t to, Error *error) {
    size_t most = table->used + to - from;
    if (2 * most > table->mask + 1 && !grow(table, most, error)) return false;
    for (size_t i = from; i < to; i++) {
        MergeEntry merge = {.pair = pair_of(merges[i].left, merges[i].right),
                            .rank = (uint32_t)i,
                            .result = merges[i].result};
        insert(table, &merge);
    }
    return true;
}

void merge_table_free(MergeTable *table) {
    free(table->entries);
    free(table->filter);
    *table = (MergeTable){0};
}

static inline const MergeEntry *find(const MergeTable *table, uint32_t left, uint32_t right) {
    uint64_t pair = pair_of(left, right), hash = hash_mix(pair);
    size_t bit = filter_bit(table, hash);
    if (!(table->filter[bit / 8] >> bit % 8 & 1)) return &no_merge;
    for (size_t place = hash;; place++) {
        const MergeEntry *entry = &table->entries[place & table->mask];
        if (entry->pair == pair) return entry;
        if (entry->pair == UINT64_MAX) return &no_merge;
    }
}

static size_t merge_short(const MergeTable *table, uint32_t *ids, size_t count) {
    const MergeEntry *merges[SHORT_PIECE]; /* of (ids[i], ids[i + 1]) */
    for (size_t i = 0; i + 1 < count; i++) merges[i] = find(table, ids[i], ids[i + 1]);
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (merges[i]->rank < merges[best]->rank) best = i;
        if (merges[best] == &no_merge) break;
        ids[best] = merges[best]->result;
        count--;
        memmove(ids + best + 1, ids + best + 2, (count - best - 1) * sizeof *ids);
        memmove(merges + best, merges + best + 1, (count - best - 1) * sizeof *merges);
        if (best > 0) merges[best - 1] = find(table, ids[best - 1], ids[best]);
        if (best + 1 < count) merges[best] = find(table, ids[best], ids[best + 1]);
    }
    return count;
}

/* Long pieces: the tokens are a doubly linked list, and a heap holds rank << 32 | position of every
 * pair that can be merged. A pair that has changed since it was pushed has another rank: ranks are
 * unique to a pair, so comparing them finds what is out of date. */
typedef struct Chain {
    const MergeTable *table;
    uint32_t *ids, *next, *previous;
    uint64_t *heap;
    size_t heap_size;
} Chain;

enum { END = UINT32_MAX };

static void heap_push(Chain *chain, uint64_t key) {
    size_t at = chain->heap_size++;
    for (; at > 0 && chain->heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        chain->heap[at] = chain->heap[(at - 1) / 2];
    chain->heap[at] = key;
}

static uint64_t heap_pop(Chain *chain) {
    uint64_t top = chain->heap[0], last = chain->heap[--chain->heap_size];
    size_t at = 0, size = chain->heap_size;
    for (size_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && chain->heap[child + 1] < chain->heap[child]) child++;
        if (chain->heap[child] >= last) break;
        chain->heap[at] = chain->heap[child];
    }
    chain->heap[at] = last;
    return top;
}

static const MergeEntry *chain_merge(const Chain *chain, uint32_t at) {
    if (chain->ids[at] == END || chain->next[at] == END) return &no_merge;
    return find(chain->table, chain->ids[at], chain->ids[chain->next[at]]);
}

static void chain_push(Chain *chain, uint32_t at) {
    const MergeEntry *merge = chain_merge(chain, at);
    if (merge != &no_merge) heap_push(chain, (uint64_t)merge->rank << 32 | at);
}

static size_t chain_run(Chain *chain, size_t count) {
    for (uint32_t i = 0; i < count; i++) {
        chain->next[i] = i + 1 < count ? i + 1 : END;
        chain->previous[i] = i ? i - 1 : END;
    }
    for (uint32_t i = 0; i < count; i++) chain_push(chain, i);
    while (chain->heap_size) {
        uint64_t key = heap_pop(chain);
        uint32_t at = (uint32_t)key;
        const MergeEntry *merge = chain_merge(chain, at);
        if (merge == &no_merge || merge->rank != key >> 32) continue;
        uint32_t gone = chain->next[at], after = chain->next[gone];
        chain->ids[at] = merge->result;
        chain->ids[gone] = END;
        chain->next[at] = after;
        if (after != END) chain->previous[after] = at;
        if (chain->previous[at] != END) chain_push(chain, chain->previous[at]);
        chain_push(chain, at);
    }
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (chain->ids[i] != END) chain->ids[left++] = chain->ids[i];
    return left;
}

static size_t merge_long(const MergeTable *table, uint32_t *ids, size_t count, Error *error) {
    /* A merge takes one entry off the heap and puts up to two on, count - 1 times at most. */
    Chain chain = {.table = table, .ids = ids};
    chain.next = allocate(count, sizeof *chain.next, error);
    chain.previous = chain.next ? allocate(count, sizeof *chain.previous, error) : NULL;
    chain.heap = chain.previous ? allocate(2 * count, sizeof *chain.heap, error) : NULL;
    size_t left = chain.heap ? chain_run(&chain, count) : SIZE_MAX;
    free(chain.next);
    free(chain.previous);
    free(chain.heap);
    return left;
}

size_t merge_piece(const MergeTable *table, uint32_t *ids, size_t count, Error *error) {
    if (count < 2) return count;
    if (count <= SHORT_PIECE) return merge_short(table, ids, count);
    return merge_long(table, ids, count, error);
}
