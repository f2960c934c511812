/* Any bytes trained on and encoded with each named pattern: they come back, and the trained merges
 * do not depend on how the bytes arrive. */
#include <string.h>

#include "text/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Tokenizer *train(const uint8_t *data, size_t size, size_t chunk, const char *pattern) {
    static const char *const specials[] = {"<|a|>"};
    Error error;
    Trainer *trainer = trainer_open(pattern, &error);
    if (!trainer) __builtin_trap();
    for (size_t at = 0; at < size; at += chunk)
        if (!trainer_add(trainer, data + at, size - at < chunk ? size - at : chunk, &error))
            __builtin_trap();
    Tokenizer *tokenizer = trainer_finish(trainer, 272, specials, 1, NULL, NULL, &error);
    trainer_free(trainer);
    return tokenizer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const patterns[] = {"gpt2", "gpt4", "nanochat", "o200k"};
    if (!size) return 0;
    const char *pattern = patterns[data[0] % 4];
    Tokenizer *whole = train(data, size, size, pattern), *parts = train(data, size, 3, pattern);
    if (!whole != !parts) __builtin_trap();
    if (whole) {
        char left[SHA256_TEXT], right[SHA256_TEXT];
        Error error;
        Tokens tokens = {0};
        Bytes text = {0};
        tokenizer_hash(whole, left);
        tokenizer_hash(parts, right);
        if (strcmp(left, right) || !tokenizer_encode(whole, data, size, true, &tokens, &error) ||
            !tokenizer_decode(whole, tokens.ids, tokens.count, &text, &error) ||
            text.size != size || memcmp(text.data, data, size))
            __builtin_trap();
        tokens_free(&tokens);
        bytes_free(&text);
    }
    tokenizer_free(whole);
    tokenizer_free(parts);
    return 0;
}
