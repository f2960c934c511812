/* What the tests of the text room share. */
#ifndef HEARTH_TESTS_TEXT_SUPPORT_H
#define HEARTH_TESTS_TEXT_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "text/tokenizer.h"
#include "text/trainer.h"

/* Trains on one text given at once; fails the test if that fails. */
static inline Tokenizer *train_on(const void *text, size_t size, const char *pattern,
                                  uint32_t vocab_size) {
    Error error;
    Trainer *trainer = trainer_open(pattern, &error);
    assert_done(trainer != NULL, error);
    assert_done(trainer_add(trainer, text, size, &error), error);
    const char *const *specials;
    size_t count = trainer_default_specials(pattern, &specials);
    Tokenizer *tokenizer = trainer_finish(trainer, vocab_size, specials, count, NULL, NULL, &error);
    assert_done(tokenizer != NULL, error);
    trainer_free(trainer);
    return tokenizer;
}

static inline Tokens encode(const Tokenizer *tokenizer, const void *text, size_t size,
                            bool specials) {
    Error error;
    Tokens tokens = {0};
    assert_done(tokenizer_encode(tokenizer, text, size, specials, &tokens, &error), error);
    return tokens;
}

/* Encoding and decoding give the same bytes. Returns the number of tokens. */
static inline size_t assert_round_trip(const Tokenizer *tokenizer, const void *text, size_t size) {
    Error error;
    Tokens tokens = encode(tokenizer, text, size, true);
    Bytes decoded = {0};
    size_t count = tokens.count;
    assert_done(tokenizer_decode(tokenizer, tokens.ids, tokens.count, &decoded, &error), error);
    assert_int_equal(decoded.size, size);
    if (size) assert_memory_equal(decoded.data, text, size);
    bytes_free(&decoded);
    tokens_free(&tokens);
    return count;
}

static inline void assert_same_tokenizer(const Tokenizer *a, const Tokenizer *b) {
    char left[SHA256_TEXT], right[SHA256_TEXT];
    tokenizer_hash(a, left);
    tokenizer_hash(b, right);
    assert_string_equal(left, right);
}

static inline Tokenizer *open_shared(const char *name) {
    Error error;
    const char *path = shared_data(name);
    if (!path) return NULL;
    Tokenizer *tokenizer = tokenizer_open(path, &error);
    assert_done(tokenizer != NULL, error);
    return tokenizer;
}

#endif
