/* Encoding: added tokens are found first, what lies between them is split into pieces, and a piece
 * is looked up (among the tokens, then among what this thread has merged lately) or merged. */
#include <string.h>

#include "text/hash.h"
#include "text/piece_cache.h"
#include "text/vocabulary.h"

static bool is_cached(const CachedPiece *place, const Tokenizer *tokenizer, const uint8_t *piece,
                      size_t size) {
    return place->owner == tokenizer->serial && place->size == size &&
           !memcmp(place->bytes, piece, size);
}

static void keep(CachedPiece *place, const Tokenizer *tokenizer, const uint8_t *piece, size_t size,
                 const uint32_t *ids, size_t count) {
    place->owner = tokenizer->serial;
    place->size = (uint8_t)size;
    place->count = (uint8_t)count;
    memcpy(place->bytes, piece, size);
    memcpy(place->ids, ids, count * sizeof *ids);
}

/* Writes the ids of a piece, at most one a byte. Returns how many; SIZE_MAX on failure. */
static size_t encode_piece(const Tokenizer *tokenizer, const uint8_t *piece, size_t size,
                           uint32_t *ids, Error *error) {
    uint64_t hash = hash_bytes(piece, size);
    const TokenIndexEntry *entry = token_index_find(&tokenizer->index, hash, piece, size);
    if (entry->size && entry->whole) {
        ids[0] = entry->id;
        return 1;
    }
    CachedPiece *place = size <= CACHED_BYTES ? piece_cache_place(hash) : NULL;
    if (place && is_cached(place, tokenizer, piece, size)) {
        memcpy(ids, place->ids, place->count * sizeof *ids);
        return place->count;
    }
    for (size_t i = 0; i < size; i++) ids[i] = tokenizer->byte_ids[piece[i]];
    size_t count = merge_piece(&tokenizer->table, ids, size, error);
    if (place && count <= CACHED_IDS) keep(place, tokenizer, piece, size, ids, count);
    return count;
}

static bool encode_text(const Tokenizer *tokenizer, Splitter *splitter, const uint8_t *text,
                        size_t size, Tokens *out, Error *error) {
    const uint8_t *piece;
    size_t piece_size;
    SplitResult result;
    splitter_set_text(splitter, text, size);
    while ((result = splitter_next(splitter, &piece, &piece_size, error)) == SPLIT_PIECE) {
        if (!reserve(&out->ids, &out->capacity, out->count + piece_size, sizeof *out->ids, error))
            return false;
        size_t count = encode_piece(tokenizer, piece, piece_size, out->ids + out->count, error);
        if (count == SIZE_MAX) return false;
        out->count += count;
    }
    return result == SPLIT_END;
}

/* The longest added token that stands at the start of the text, or NULL. */
static const uint32_t *added_at(const Tokenizer *tokenizer, const uint8_t *text, size_t size,
                                bool specials) {
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        uint32_t id = tokenizer->added[i];
        const Token *token = &tokenizer->tokens[id];
        if (token->kind == TOKEN_SPECIAL && !specials) continue;
        if (token->size <= size && !memcmp(text, tokenizer->token_bytes[id], token->size))
            return &tokenizer->added[i];
    }
    return NULL;
}

/* The first added token at or after *at, which is moved there, or to the end when there is none. */
static const uint32_t *next_added(const Tokenizer *tokenizer, const uint8_t *text, size_t size,
                                  size_t *at, bool specials) {
    size_t sought = specials ? tokenizer->added_count : tokenizer->plain_count;
    for (; sought && *at < size; ++*at) {
        if (!tokenizer->added_begins[text[*at]]) continue;
        const uint32_t *found = added_at(tokenizer, text + *at, size - *at, specials);
        if (found) return found;
    }
    *at = size;
    return NULL;
}

bool tokenizer_encode(const Tokenizer *tokenizer, const void *text, size_t size, bool specials,
                      Tokens *out, Error *error) {
    Splitter splitter;
    if (!splitter_start(&splitter, tokenizer->pattern, error)) return false;
    size_t start = 0, before = out->count;
    bool done = true;
    while (done && start < size) {
        const uint8_t *bytes = text;
        size_t end = start;
        const uint32_t *added = next_added(tokenizer, bytes, size, &end, specials);
        done = encode_text(tokenizer, &splitter, bytes + start, end - start, out, error);
        start = end;
        if (!done || !added) continue;
        done = reserve(&out->ids, &out->capacity, out->count + 1, sizeof *out->ids, error);
        if (done) out->ids[out->count++] = *added;
        start += tokenizer->tokens[*added].size;
    }
    splitter_stop(&splitter);
    if (!done) out->count = before;
    return done;
}
