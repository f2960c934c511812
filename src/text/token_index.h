/* The token index: from the bytes of a token to its id. */
#ifndef HEARTH_TEXT_TOKEN_INDEX_H
#define HEARTH_TEXT_TOKEN_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* `whole`: a piece of text equal to this token is this one token, without a look at the merges. */
typedef struct TokenIndexEntry {
    uint64_t head; /* the first eight bytes, zero-padded */
    uint32_t id;
    uint32_t size : 31; /* 0: a free place */
    uint32_t whole : 1;
} TokenIndexEntry;

typedef struct TokenIndex {
    TokenIndexEntry *entries;
    size_t mask;
    const uint8_t *const *bytes; /* of each id, for tokens longer than eight */
} TokenIndex;

/* Room for `count` tokens; `bytes` has the bytes of each id. */
bool token_index_create(TokenIndex *index, size_t count, const uint8_t *const *bytes, Error *error);
void token_index_free(TokenIndex *index);

/* The entry of these bytes, whose hash_bytes() is `hash`, or the free place (size 0) where it would
 * stand. */
TokenIndexEntry *token_index_find(const TokenIndex *index, uint64_t hash, const uint8_t *bytes,
                                  size_t size);

#endif
