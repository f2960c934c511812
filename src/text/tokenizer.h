/* A byte-level BPE tokenizer: bytes in, ids out, and back.
 *
 * A tokenizer is a table of tokens (each a run of bytes), merge ranks, a split pattern and special
 * tokens. It is immutable once opened and may be used from many threads at once. */
#ifndef HEARTH_TEXT_TOKENIZER_H
#define HEARTH_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "base/memory.h"

typedef struct Tokenizer Tokenizer;

/* Opens whichever form `path` names: a Hugging Face tokenizer.json or a directory with one; GPT-2's
 * vocab.json or encoder.json (its merges.txt or vocab.bpe beside it) or a directory with them; a
 * tiktoken rank file (*.tiktoken; name says the pattern: r50k_base, p50k_base, cl100k_base,
 * o200k_base). NULL with an error otherwise. */
Tokenizer *tokenizer_open(const char *path, Error *error);

/* The tokenizer.json of a dataset or checkpoint, which may have none: then *tokenizer is NULL. A broken
 * one is an error. */
bool tokenizer_open_if_any(const char *directory, Tokenizer **tokenizer, Error *error);
void tokenizer_free(Tokenizer *tokenizer);

/* Writes tokenizer.json and tokenizer_config.json, which transformers' AutoTokenizer reads. */
bool tokenizer_save(const Tokenizer *tokenizer, const char *directory, Error *error);

/* A growable array of ids. Zero-initialise; release with tokens_free(). */
typedef struct Tokens {
    uint32_t *ids;
    size_t count, capacity;
} Tokens;
void tokens_free(Tokens *tokens);

/* Appends the ids of `size` bytes of text; bytes that are not UTF-8 are kept. Special tokens that
 * are spelled out in the text become their ids only when `specials` is true; otherwise they are
 * text. */
bool tokenizer_encode(const Tokenizer *tokenizer, const void *text, size_t size, bool specials,
                      Tokens *out, Error *error);

/* The bytes of one token (a special token: its spelling), not NUL-terminated. Valid as long as the
 * tokenizer; NULL for ids that are out of range or unused. */
const uint8_t *tokenizer_token(const Tokenizer *tokenizer, uint32_t id, size_t *size);

/* Appends the bytes that the ids stand for; an id out of range is an error. */
bool tokenizer_decode(const Tokenizer *tokenizer, const uint32_t *ids, size_t count, Bytes *out,
                      Error *error);

/* Highest id + 1, special tokens included: what a model's vocabulary must hold. */
uint32_t tokenizer_vocab_size(const Tokenizer *tokenizer);
bool tokenizer_is_special(const Tokenizer *tokenizer, uint32_t id);

/* The id of the special token of that spelling, or -1. */
int64_t tokenizer_special(const Tokenizer *tokenizer, const char *spelling);

/* What stands before each document in a dataset: <|bos|>, else <|endoftext|>, else
 * <|begin_of_text|>, else <s>; -1 when there is none. It also ends generation. */
int64_t tokenizer_document_separator(const Tokenizer *tokenizer);

/* SHA-256 over everything that decides ids: tokens, ranks, pattern, specials. The same tokenizer
 * read from another file form has the same hash. */
void tokenizer_hash(const Tokenizer *tokenizer, char out[SHA256_TEXT]);

#endif
