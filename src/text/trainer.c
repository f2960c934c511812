#include "text/trainer.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "text/learn.h"
#include "text/vocabulary.h"

/* Text waits in `pending` until there is enough of it to keep every thread busy. Each thread then
 * counts the words of one slice; slices meet where a text ends or the pattern surely splits. Of a
 * text that is not over, the last bytes are kept back: there a word might go on. */
enum { BATCH_PER_THREAD = 8 << 20 };

struct Trainer {
    Pattern *pattern;
    WordCounts words;
    Bytes pending;
    size_t *ends; /* where texts end in `pending`, ascending */
    size_t end_count, end_capacity;
    TrainerLimits limits;
    int64_t characters; /* of the texts that are over */
    int64_t left;       /* characters that the current text may still have */
    int64_t bytes;      /* of all text so far */
    bool cropped;
};

void trainer_limit(Trainer *trainer, TrainerLimits limits) {
    trainer->limits = limits;
    trainer->left = limits.text;
}

bool trainer_is_full(const Trainer *trainer) {
    return trainer->characters > trainer->limits.total;
}

bool trainer_is_cropped(const Trainer *trainer) {
    return trainer->cropped;
}

int64_t trainer_bytes(const Trainer *trainer) {
    return trainer->bytes;
}

Trainer *trainer_open(const char *pattern, Error *error) {
    Trainer *trainer = allocate(1, sizeof *trainer, error);
    if (!trainer) return NULL;
    trainer_limit(trainer, (TrainerLimits){INT64_MAX, INT64_MAX});
    trainer->pattern = pattern_compile(pattern, error);
    if (trainer->pattern) return trainer;
    trainer_free(trainer);
    return NULL;
}

void trainer_free(Trainer *trainer) {
    if (!trainer) return;
    pattern_free(trainer->pattern);
    word_counts_free(&trainer->words);
    bytes_free(&trainer->pending);
    free(trainer->ends);
    free(trainer);
}

/* The first text end at or after `position`; `size` when the last text is not over. */
static size_t text_end(const Trainer *trainer, size_t position) {
    size_t low = 0, high = trainer->end_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (trainer->ends[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trainer->end_count ? trainer->ends[low] : trainer->pending.size;
}

/* The first place at or after `position` where the text can be cut. */
static size_t cut_after(const Trainer *trainer, size_t position) {
    if (position == 0) return 0;
    size_t end = text_end(trainer, position);
    while (position < end && !pattern_cuts(trainer->pattern, trainer->pending.data, position))
        position++;
    return position;
}

/* Counts the words of pending[start..end) and returns where it stopped: before `end` only at the
 * end of a text that goes on, where a match would see less text than it may. SIZE_MAX on failure.
 */
static size_t count_slice(const Trainer *trainer, size_t start, size_t end, WordCounts *words,
                          Error *error) {
    Splitter splitter;
    if (!splitter_start(&splitter, trainer->pattern, error)) return SIZE_MAX;
    bool open = end == trainer->pending.size &&
                (!trainer->end_count || trainer->ends[trainer->end_count - 1] < end);
    bool done = true;
    while (done && start < end) {
        size_t stop = text_end(trainer, start + 1);
        if (stop > end) stop = end;
        const uint8_t *word;
        size_t size;
        SplitResult result = SPLIT_END;
        splitter_set_text(&splitter, trainer->pending.data + start, stop - start);
        bool last = open && stop == end;
        /* 4: the last character may be there only in part */
        while (done && !(last && stop - start - splitter.position < SPLIT_WINDOW + 4) &&
               (result = splitter_next(&splitter, &word, &size, error)) == SPLIT_PIECE)
            done = word_counts_add(words, word, size, 1, error);
        done = done && result != SPLIT_FAILED;
        start += splitter.position;
        if (last) break;
    }
    splitter_stop(&splitter);
    return done ? start : SIZE_MAX;
}

/* Counts all of `pending` but the rest of a text that goes on. */
static bool count_pending(Trainer *trainer, Error *error) {
    size_t size = trainer->pending.size, stopped = size;
    if (!size) return true;
    int slices = thread_count();
    bool done = true;
#pragma omp parallel for schedule(static, 1) num_threads(slices)
    for (int i = 0; i < slices; i++) {
        size_t start = cut_after(trainer, size / (size_t)slices * (size_t)i);
        size_t end =
            i + 1 < slices ? cut_after(trainer, size / (size_t)slices * (size_t)(i + 1)) : size;
        WordCounts words = {0};
        Error problem;
        size_t stop = count_slice(trainer, start, end, &words, &problem);
#pragma omp critical
        {
            if (stop < end) stopped = stop;
            if (done &&
                (stop == SIZE_MAX || !word_counts_merge(&trainer->words, &words, &problem))) {
                *error = problem;
                done = false;
            }
        }
        word_counts_free(&words);
    }
    if (!done) return false;
    if (trainer->words.used > TRAINER_WORDS_MOST)
        return fail(error, "the text has more than %d distinct words; train on a sample of it",
                    TRAINER_WORDS_MOST);
    memmove(trainer->pending.data, trainer->pending.data + stopped, size - stopped);
    trainer->pending.size = size - stopped;
    trainer->end_count = 0;
    return true;
}

/* How many bytes the current text may have of these. */
static size_t crop(Trainer *trainer, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if ((bytes[i] & 0xC0) == 0x80) continue; /* within a character */
        if (!trainer->left) {
            trainer->cropped = true;
            return i;
        }
        trainer->left--;
    }
    return size;
}

bool trainer_add(Trainer *trainer, const void *text, size_t size, Error *error) {
    size_t batch = (size_t)thread_count() * BATCH_PER_THREAD;
    const uint8_t *bytes = text;
    size = crop(trainer, bytes, size);
    trainer->bytes += (int64_t)size;
    while (size) {
        size_t part = size < batch ? size : batch;
        if (!bytes_append(&trainer->pending, bytes, part, error)) return false;
        bytes += part;
        size -= part;
        if (trainer->pending.size >= batch && !count_pending(trainer, error)) return false;
    }
    return true;
}

bool trainer_end_text(Trainer *trainer, Error *error) {
    if (!reserve(&trainer->ends, &trainer->end_capacity, trainer->end_count + 1,
                 sizeof *trainer->ends, error))
        return false;
    trainer->ends[trainer->end_count++] = trainer->pending.size;
    trainer->characters += trainer->limits.text - trainer->left;
    trainer->left = trainer->limits.text;
    return true;
}

static bool build(Tokenizer *tokenizer, const Merge *merges, size_t count,
                  const char *const *specials, size_t special_count, const char *pattern,
                  Error *error) {
    bool done = true;
    for (int byte = 0; done && byte < 256; byte++) {
        uint8_t one = (uint8_t)byte;
        done = tokenizer_add_token(tokenizer, byte, &one, 1, TOKEN_TEXT, error);
    }
    Bytes joined = {0};
    for (size_t i = 0; done && i < count; i++) {
        const Token *left = &tokenizer->tokens[merges[i].left];
        const Token *right = &tokenizer->tokens[merges[i].right];
        joined.size = 0;
        done = bytes_append(&joined, tokenizer->bytes.data + left->start, left->size, error) &&
               bytes_append(&joined, tokenizer->bytes.data + right->start, right->size, error) &&
               tokenizer_add_token(tokenizer, merges[i].result, joined.data, joined.size,
                                   TOKEN_TEXT, error);
    }
    bytes_free(&joined);
    for (size_t i = 0; done && i < special_count; i++)
        done = tokenizer_add_token(tokenizer, (int64_t)(256 + count + i), specials[i],
                                   strlen(specials[i]), TOKEN_SPECIAL, error);
    done = done && tokenizer_index(tokenizer, error);
    for (size_t i = 0; done && i < count; i++)
        done = tokenizer_add_merge(tokenizer, merges[i].left, merges[i].right, error);
    return done && tokenizer_finish(tokenizer, pattern, error);
}

Tokenizer *trainer_finish(Trainer *trainer, uint32_t vocab_size, const char *const *specials,
                          size_t special_count, TrainerProgress *progress, void *context,
                          Error *error) {
    size_t least = 256 + special_count;
    if (vocab_size < least || vocab_size > TOKENS_MOST) {
        fail(error,
             "a vocabulary of %u is not possible: it must be from %zu (256 bytes and %zu "
             "special tokens) to %d",
             vocab_size, least, special_count, TOKENS_MOST);
        return NULL;
    }
    if (!trainer_end_text(trainer, error) || !count_pending(trainer, error)) return NULL;
    size_t wanted = vocab_size - least;
    Merge *merges = allocate(wanted, sizeof *merges, error);
    if (!merges) return NULL;
    size_t made = learn_merges(&trainer->words, merges, wanted, progress, context, error);
    Tokenizer *tokenizer = NULL;
    if (made == wanted)
        tokenizer = tokenizer_new(error);
    else if (made != SIZE_MAX)
        fail(error,
             "the text is too small for a vocabulary of %u: at most %zu (256 bytes, merges: %zu, "
             "special tokens: %zu) can be learned from it; ask for that or %s",
             vocab_size, least + made, made, special_count,
             trainer->cropped || trainer_is_full(trainer)
                 ? "leave less of it out (--max-doc-chars, --max-chars)"
                 : "give more text");
    if (tokenizer && !build(tokenizer, merges, made, specials, special_count,
                            pattern_text(trainer->pattern), error)) {
        tokenizer_free(tokenizer);
        tokenizer = NULL;
    }
    free(merges);
    return tokenizer;
}

static bool is_nanochat(const char *pattern) {
    return !strcmp(pattern_expression(pattern), pattern_expression("nanochat"));
}

TrainerLimits trainer_default_limits(const char *pattern) {
    return is_nanochat(pattern) ? (TrainerLimits){.text = 10000, .total = 2000000000}
                                : (TrainerLimits){INT64_MAX, INT64_MAX};
}

size_t trainer_default_specials(const char *pattern, const char *const **specials) {
    static const char *const nanochat[] = {
        "<|bos|>",           "<|user_start|>",   "<|user_end|>",   "<|assistant_start|>",
        "<|assistant_end|>", "<|python_start|>", "<|python_end|>", "<|output_start|>",
        "<|output_end|>"};
    static const char *const others[] = {"<|endoftext|>"};
    bool nine = is_nanochat(pattern);
    *specials = nine ? nanochat : others;
    return nine ? sizeof nanochat / sizeof *nanochat : 1;
}
