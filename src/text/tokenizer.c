#include "text/tokenizer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "text/hash.h"
#include "text/vocabulary.h"

void tokens_free(Tokens *tokens) {
    free(tokens->ids);
    *tokens = (Tokens){0};
}

/* --- building --- */

Tokenizer *tokenizer_new(Error *error) {
    static atomic_uint made;
    Tokenizer *tokenizer = allocate(1, sizeof *tokenizer, error);
    if (tokenizer) tokenizer->serial = atomic_fetch_add(&made, 1) + 1;
    return tokenizer;
}

void tokenizer_free(Tokenizer *tokenizer) {
    if (!tokenizer) return;
    pattern_free(tokenizer->pattern);
    merge_table_free(&tokenizer->table);
    token_index_free(&tokenizer->index);
    bytes_free(&tokenizer->bytes);
    free(tokenizer->tokens);
    free(tokenizer->token_bytes);
    free(tokenizer->merges);
    free(tokenizer->added);
    free(tokenizer);
}

bool tokenizer_add_token(Tokenizer *tokenizer, int64_t id, const void *bytes, size_t size,
                         TokenKind kind, Error *error) {
    if (id < 0 || id >= TOKENS_MOST)
        return fail(error, "token id %lld is not from 0 to %d", (long long)id, TOKENS_MOST - 1);
    if (!size || size > TOKEN_SIZE_MOST)
        return fail(error, "token %lld has %zu bytes; 1 to %d are possible", (long long)id, size,
                    TOKEN_SIZE_MOST);
    size_t needed = (size_t)id + 1;
    if (!reserve(&tokenizer->tokens, &tokenizer->capacity, needed, sizeof(Token), error))
        return false;
    while (tokenizer->vocab_size < needed) tokenizer->tokens[tokenizer->vocab_size++] = (Token){0};
    Token *token = &tokenizer->tokens[id];
    if (token->kind != TOKEN_UNUSED)
        return fail(error, "token id %lld is given twice", (long long)id);
    *token = (Token){.start = tokenizer->bytes.size, .size = (uint32_t)size, .kind = kind};
    return bytes_append(&tokenizer->bytes, bytes, size, error);
}

static TokenIndexEntry *find_entry(const Tokenizer *tokenizer, const uint8_t *bytes, size_t size) {
    return token_index_find(&tokenizer->index, hash_bytes(bytes, size), bytes, size);
}

bool tokenizer_index(Tokenizer *tokenizer, Error *error) {
    size_t count = tokenizer->vocab_size;
    tokenizer->token_bytes = allocate(count, sizeof *tokenizer->token_bytes, error);
    if (!tokenizer->token_bytes ||
        !token_index_create(&tokenizer->index, count, tokenizer->token_bytes, error))
        return false;
    for (uint32_t id = 0; id < count; id++) {
        const Token *token = &tokenizer->tokens[id];
        if (token->kind == TOKEN_UNUSED) continue;
        const uint8_t *bytes = tokenizer->bytes.data + token->start;
        tokenizer->token_bytes[id] = bytes;
        TokenIndexEntry *entry = find_entry(tokenizer, bytes, token->size);
        if (entry->size) return fail(error, "tokens %u and %u are the same bytes", entry->id, id);
        *entry = (TokenIndexEntry){
            .head = load_head(bytes, token->size), .id = id, .size = token->size & 0x7FFFFFFF};
    }
    for (int byte = 0; byte < 256; byte++) {
        uint8_t one = (uint8_t)byte;
        int64_t id = tokenizer_find(tokenizer, &one, 1);
        if (id < 0) return fail(error, "byte 0x%02x has no token; all 256 are needed", byte);
        tokenizer->byte_ids[byte] = (uint32_t)id;
    }
    return true;
}

int64_t tokenizer_find(const Tokenizer *tokenizer, const void *bytes, size_t size) {
    if (!size) return -1;
    const TokenIndexEntry *entry = find_entry(tokenizer, bytes, size);
    return entry->size ? (int64_t)entry->id : -1;
}

bool tokenizer_add_merge(Tokenizer *tokenizer, uint32_t left, uint32_t right, Error *error) {
    const Token *first = &tokenizer->tokens[left], *second = &tokenizer->tokens[right];
    size_t size = (size_t)first->size + second->size;
    Bytes joined = {0};
    bool done = bytes_append(&joined, tokenizer->token_bytes[left], first->size, error) &&
                bytes_append(&joined, tokenizer->token_bytes[right], second->size, error);
    int64_t result = done ? tokenizer_find(tokenizer, joined.data, size) : -1;
    bytes_free(&joined);
    if (!done) return false;
    if (result < 0)
        return fail(error, "merge %zu joins tokens %u and %u, but what they make is no token",
                    tokenizer->merge_count, left, right);
    if (tokenizer->merge_count >= UINT32_MAX - 1 ||
        !reserve(&tokenizer->merges, &tokenizer->merge_capacity, tokenizer->merge_count + 1,
                 sizeof(Merge), error))
        return false;
    tokenizer->merges[tokenizer->merge_count++] =
        (Merge){.left = left, .right = right, .result = (uint32_t)result};
    return true;
}

static int longer_first(const void *a, const void *b, void *context) {
    const Token *tokens = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    uint32_t left_size = tokens[left].size, right_size = tokens[right].size;
    if (left_size != right_size) return left_size > right_size ? -1 : 1;
    return (left > right) - (left < right);
}

static bool collect_added(Tokenizer *tokenizer, Error *error) {
    for (int pass = 0; pass < 2; pass++) {
        tokenizer->added_count = tokenizer->plain_count = 0;
        for (uint32_t id = 0; id < tokenizer->vocab_size; id++) {
            if (tokenizer->tokens[id].kind < TOKEN_ADDED) continue;
            if (pass) tokenizer->added[tokenizer->added_count] = id;
            if (pass) tokenizer->added_begins[tokenizer->token_bytes[id][0]] = true;
            tokenizer->added_count++;
            tokenizer->plain_count += tokenizer->tokens[id].kind == TOKEN_ADDED;
        }
        if (!pass) {
            tokenizer->added = allocate(tokenizer->added_count, sizeof *tokenizer->added, error);
            if (!tokenizer->added) return false;
        }
    }
    qsort_r(tokenizer->added, tokenizer->added_count, sizeof *tokenizer->added, longer_first,
            tokenizer->tokens);
    return true;
}

/* Marks the tokens that the merges make of their own bytes, so that encoding can look them up. */
static bool mark_whole(Tokenizer *tokenizer, Error *error) {
    uint32_t *ids = allocate(TOKEN_SIZE_MOST, sizeof *ids, error);
    if (!ids) return false;
    size_t count = 1;
    for (uint32_t id = 0; id < tokenizer->vocab_size && count != SIZE_MAX; id++) {
        const Token *token = &tokenizer->tokens[id];
        if (token->kind != TOKEN_TEXT) continue;
        const uint8_t *bytes = tokenizer->token_bytes[id];
        for (size_t i = 0; i < token->size; i++) ids[i] = tokenizer->byte_ids[bytes[i]];
        count =
            tokenizer->whole_first ? 1 : merge_piece(&tokenizer->table, ids, token->size, error);
        bool whole = tokenizer->whole_first || (count == 1 && ids[0] == id);
        find_entry(tokenizer, bytes, token->size)->whole = whole;
    }
    free(ids);
    return count != SIZE_MAX;
}

bool tokenizer_finish(Tokenizer *tokenizer, const char *pattern, Error *error) {
    tokenizer->pattern = pattern_compile(pattern, error);
    return tokenizer->pattern && collect_added(tokenizer, error) &&
           merge_table_create(&tokenizer->table, tokenizer->merges, tokenizer->merge_count,
                              error) &&
           mark_whole(tokenizer, error);
}

/* --- asking --- */

const uint8_t *tokenizer_token(const Tokenizer *tokenizer, uint32_t id, size_t *size) {
    if (id >= tokenizer->vocab_size || tokenizer->tokens[id].kind == TOKEN_UNUSED) return NULL;
    *size = tokenizer->tokens[id].size;
    return tokenizer->token_bytes[id];
}

bool tokenizer_decode(const Tokenizer *tokenizer, const uint32_t *ids, size_t count, Bytes *out,
                      Error *error) {
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const uint8_t *bytes = tokenizer_token(tokenizer, ids[i], &size);
        if (!bytes)
            return fail(error,
                        "id %u at position %zu is no token of this tokenizer, whose "
                        "vocabulary is %zu; was the text encoded with another one?",
                        ids[i], i, tokenizer->vocab_size);
        if (!bytes_append(out, bytes, size, error)) return false;
    }
    return true;
}

uint32_t tokenizer_vocab_size(const Tokenizer *tokenizer) {
    return (uint32_t)tokenizer->vocab_size;
}

bool tokenizer_is_special(const Tokenizer *tokenizer, uint32_t id) {
    return id < tokenizer->vocab_size && tokenizer->tokens[id].kind == TOKEN_SPECIAL;
}

int64_t tokenizer_special(const Tokenizer *tokenizer, const char *spelling) {
    int64_t id = tokenizer_find(tokenizer, spelling, strlen(spelling));
    return id >= 0 && tokenizer_is_special(tokenizer, (uint32_t)id) ? id : -1;
}

int64_t tokenizer_document_separator(const Tokenizer *tokenizer) {
    static const char *const spellings[] = {"<|bos|>", "<|endoftext|>", "<|begin_of_text|>", "<s>"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        int64_t id = tokenizer_special(tokenizer, spellings[i]);
        if (id >= 0) return id;
    }
    return -1;
}
