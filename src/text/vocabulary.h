/* What a Tokenizer is, and how the readers and the trainer put one together: tokenizer_new(), then
 * tokenizer_add_token() for each, tokenizer_index(), tokenizer_add_merge() for each in order of
 * rank, tokenizer_finish(). */
#ifndef HEARTH_TEXT_VOCABULARY_H
#define HEARTH_TEXT_VOCABULARY_H

#include "base/json.h"
#include "text/merges.h"
#include "text/splitter.h"
#include "text/token_index.h"
#include "text/tokenizer.h"

enum {
    TOKENS_MOST = 1 << 24,         /* ids are below this: hostile files cannot ask for more */
    TOKEN_SIZE_MOST = SPLIT_WINDOW /* no piece is longer, so no longer token could ever occur */
};

typedef enum TokenKind {
    TOKEN_UNUSED,
    TOKEN_TEXT,
    TOKEN_ADDED,   /* found in any text before it is split */
    TOKEN_SPECIAL, /* found in text only when asked for */
} TokenKind;

typedef struct Token {
    size_t start; /* in bytes.data */
    uint32_t size;
    TokenKind kind;
} Token;

struct Tokenizer {
    uint32_t
        serial; /* another for every one made: what is cached for it is not taken for another's */
    Token *tokens; /* by id */
    size_t vocab_size, capacity;
    Bytes bytes;
    const uint8_t **token_bytes; /* by id; made by tokenizer_index() */
    TokenIndex index;
    Merge *merges; /* in order of rank */
    size_t merge_count, merge_capacity;
    MergeTable table;
    Pattern *pattern;
    bool whole_first;       /* a piece that is a token is that token, whatever the merges say */
    uint32_t byte_ids[256]; /* the token of each byte */
    uint32_t *added;        /* ids that are not TOKEN_TEXT, longest spelling first */
    size_t added_count, plain_count; /* plain: those that are not special */
    bool added_begins[256];          /* whether a spelling in `added` begins with the byte */
};

Tokenizer *tokenizer_new(Error *error);

/* An id or a spelling given twice is an error (the latter found by tokenizer_index()). */
bool tokenizer_add_token(Tokenizer *tokenizer, int64_t id, const void *bytes, size_t size,
                         TokenKind kind, Error *error);
bool tokenizer_index(Tokenizer *tokenizer, Error *error);

/* The id of a token with these bytes, or -1. */
int64_t tokenizer_find(const Tokenizer *tokenizer, const void *bytes, size_t size);

/* Both parts and what they make together must be tokens. */
bool tokenizer_add_merge(Tokenizer *tokenizer, uint32_t left, uint32_t right, Error *error);

/* `pattern` as for pattern_compile(). */
bool tokenizer_finish(Tokenizer *tokenizer, const char *pattern, Error *error);

/* Readers of one file form each. */
Tokenizer *huggingface_open(const char *path, const json_t *root, Error *error);
Tokenizer *gpt2_open(const char *path, const json_t *vocabulary, Error *error);
Tokenizer *tiktoken_open(const char *path, Error *error);
/* From memory, for fuzzing; `name` is the file's name, which says the pattern. */
Tokenizer *tiktoken_parse(const char *name, const char *text, size_t size, Error *error);

#endif
