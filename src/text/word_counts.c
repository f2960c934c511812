#include "text/word_counts.h"

#include <stdlib.h>
#include <string.h>

#include "text/hash.h"

static bool grow(WordCounts *counts, Error *error) {
    size_t places = counts->places ? 2 * (counts->mask + 1) : 1024;
    Word *grown = allocate(places, sizeof *grown, error);
    if (!grown) return false;
    for (size_t i = 0; counts->places && i <= counts->mask; i++) {
        if (!counts->places[i].size) continue;
        size_t place = counts->places[i].hash & (places - 1);
        while (grown[place].size) place = (place + 1) & (places - 1);
        grown[place] = counts->places[i];
    }
    free(counts->places);
    counts->places = grown;
    counts->mask = places - 1;
    return true;
}

static bool add_hashed(WordCounts *counts, uint64_t hash, const uint8_t *word, size_t size,
                       int64_t count, Error *error) {
    if ((!counts->places || 2 * counts->used > counts->mask) && !grow(counts, error)) return false;
    for (size_t place = hash;; place++) {
        Word *found = &counts->places[place & counts->mask];
        if (!found->size) {
            *found = (Word){
                .hash = hash, .start = counts->bytes.size, .count = count, .size = (uint32_t)size};
            counts->used++;
            return bytes_append(&counts->bytes, word, size, error);
        }
        if (found->hash == hash && found->size == size &&
            !memcmp(counts->bytes.data + found->start, word, size)) {
            found->count += count;
            return true;
        }
    }
}

bool word_counts_add(WordCounts *counts, const uint8_t *word, size_t size, int64_t count,
                     Error *error) {
    return add_hashed(counts, hash_bytes(word, size), word, size, count, error);
}

bool word_counts_merge(WordCounts *counts, const WordCounts *other, Error *error) {
    for (size_t i = 0; other->places && i <= other->mask; i++) {
        const Word *word = &other->places[i];
        if (word->size && !add_hashed(counts, word->hash, other->bytes.data + word->start,
                                      word->size, word->count, error))
            return false;
    }
    return true;
}

void word_counts_free(WordCounts *counts) {
    free(counts->places);
    bytes_free(&counts->bytes);
    *counts = (WordCounts){0};
}
