/* How often each distinct piece ("word") occurs: a hash table whose keys lie end to end. */
#ifndef HEARTH_TEXT_WORD_COUNTS_H
#define HEARTH_TEXT_WORD_COUNTS_H

#include "base/memory.h"

typedef struct Word {
    uint64_t hash;
    size_t start; /* in the table's bytes */
    int64_t count;
    uint32_t size; /* 0: a free place */
} Word;

typedef struct WordCounts {
    Word *places;
    size_t mask, used;
    Bytes bytes;
} WordCounts;

bool word_counts_add(WordCounts *counts, const uint8_t *word, size_t size, int64_t count,
                     Error *error);
/* Adds all of `other`. */
bool word_counts_merge(WordCounts *counts, const WordCounts *other, Error *error);
void word_counts_free(WordCounts *counts);

#endif
