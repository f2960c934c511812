/* tiktoken's rank files: a line has a token in base64, a space and its rank, which is its id. They
 * say neither the pattern nor the special tokens: the file's name does.
 *
 * tiktoken joins the adjacent pair whose joined bytes have the lowest rank. The merge that makes a
 * token is found by encoding the token's own bytes with the merges of lower rank: two tokens are
 * left. Where more are left, the token can be made of any two tokens that join to it, and a piece
 * that equals it is it at once; both are kept. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "text/vocabulary.h"

enum { FILE_MOST = 256 << 20 }; /* bytes */

typedef struct Special {
    const char *spelling;
    uint32_t id;
} Special;

static const struct {
    const char *name, *pattern;
    Special specials[6];
} encodings[] = {
    {"r50k_base", "gpt2", {{"<|endoftext|>", 50256}}},
    {"p50k_base", "gpt2", {{"<|endoftext|>", 50256}}},
    {"cl100k_base",
     "cl100k",
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {"o200k_base", "o200k", {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
};
enum { ENCODINGS = sizeof encodings / sizeof *encodings };

static int find_encoding(const char *path, Error *error) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < ENCODINGS; i++)
        if (!strncmp(name, encodings[i].name, strlen(encodings[i].name))) return i;
    fail(error,
         "the file's name does not say its split pattern; rename it to r50k_base, p50k_base, "
         "cl100k_base or o200k_base, with .tiktoken");
    return -1;
}

/* "dG9rZW4= 123" */
static bool read_line(Tokenizer *tokenizer, const char *line, size_t size, Error *error) {
    const char *space = memchr(line, ' ', size);
    size_t length = space ? (size_t)(space - line) : 0;
    if (!length || length % 4 || length > 4 * (TOKEN_SIZE_MOST / 3))
        return fail(error, "expected a token in base64, a space and its rank");
    char *end;
    long long rank = strtoll(space + 1, &end, 10);
    if (end == space + 1 || end != line + size)
        return fail(error, "the rank is not a whole number");
    Bytes token = {0};
    bool done = reserve(&token.data, &token.capacity, length, 1, error);
    int decoded = done ? EVP_DecodeBlock(token.data, (const uint8_t *)line, (int)length) : -1;
    if (done && decoded < 1) done = fail(error, "the token is not valid base64");
    if (done) {
        size_t padding = (size_t)(line[length - 1] == '=') + (size_t)(line[length - 2] == '=');
        done = tokenizer_add_token(tokenizer, rank, token.data, (size_t)decoded - padding,
                                   TOKEN_TEXT, error);
    }
    bytes_free(&token);
    return done;
}

static bool read_lines(Tokenizer *tokenizer, const char *text, size_t size, Error *error) {
    const char *at = text, *end = text + size;
    for (size_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        size_t length = (size_t)(stop - at);
        if (length && at[length - 1] == '\r') length--;
        if (length && !read_line(tokenizer, at, length, error))
            return fail_within(error, "line %zu", line);
        at = stop + 1;
    }
    return true;
}

static bool add_every_split(Tokenizer *tokenizer, const Token *token, const uint8_t *bytes,
                            Error *error) {
    for (size_t cut = 1; cut < token->size; cut++) {
        int64_t left = tokenizer_find(tokenizer, bytes, cut);
        int64_t right = tokenizer_find(tokenizer, bytes + cut, token->size - cut);
        if (left >= 0 && right >= 0 &&
            !tokenizer_add_merge(tokenizer, (uint32_t)left, (uint32_t)right, error))
            return false;
    }
    return true;
}

/* Finds the merge that makes token `id`, given those of lower rank in the growing table. */
static bool derive_merge(Tokenizer *tokenizer, uint32_t id, MergeTable *table, uint32_t *ids,
                         Error *error) {
    const Token *token = &tokenizer->tokens[id];
    const uint8_t *bytes = tokenizer->token_bytes[id];
    for (size_t i = 0; i < token->size; i++) ids[i] = tokenizer->byte_ids[bytes[i]];
    size_t count = merge_piece(table, ids, token->size, error), before = tokenizer->merge_count;
    if (count == SIZE_MAX) return false;
    if (count == 2) {
        if (!tokenizer_add_merge(tokenizer, ids[0], ids[1], error)) return false;
    } else {
        tokenizer->whole_first = true;
        if (!add_every_split(tokenizer, token, bytes, error)) return false;
    }
    return merge_table_add(table, tokenizer->merges, before, tokenizer->merge_count, error);
}

static bool derive_merges(Tokenizer *tokenizer, Error *error) {
    MergeTable table = {0};
    uint32_t *ids = allocate(TOKEN_SIZE_MOST, sizeof *ids, error);
    bool done = ids && merge_table_create(&table, NULL, 0, error);
    for (uint32_t id = 0; done && id < tokenizer->vocab_size; id++) {
        const Token *token = &tokenizer->tokens[id];
        if (token->kind == TOKEN_TEXT && token->size > 1)
            done = derive_merge(tokenizer, id, &table, ids, error);
    }
    merge_table_free(&table);
    free(ids);
    return done;
}

Tokenizer *tiktoken_parse(const char *name, const char *text, size_t size, Error *error) {
    int encoding = find_encoding(name, error);
    Tokenizer *tokenizer = encoding < 0 ? NULL : tokenizer_new(error);
    bool done = tokenizer && read_lines(tokenizer, text, size, error);
    const Special *special = done ? encodings[encoding].specials : NULL;
    for (; done && special->spelling; special++)
        done = tokenizer_add_token(tokenizer, special->id, special->spelling,
                                   strlen(special->spelling), TOKEN_SPECIAL, error);
    if (done && tokenizer_index(tokenizer, error) && derive_merges(tokenizer, error) &&
        tokenizer_finish(tokenizer, encodings[encoding].pattern, error))
        return tokenizer;
    tokenizer_free(tokenizer);
    fail_within(error, "%s", name);
    return NULL;
}

Tokenizer *tiktoken_open(const char *path, Error *error) {
    Bytes file = {0};
    Tokenizer *tokenizer = NULL;
    if (file_read(path, FILE_MOST, &file, error))
        tokenizer = tiktoken_parse(path, (const char *)file.data, file.size, error);
    bytes_free(&file);
    return tokenizer;
}
