/* Any lines after the 256 bytes as a tiktoken rank file: refused, or a tokenizer that gives every
 * byte back. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "text/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool append_bytes(Bytes *file, Error *error) {
    for (int i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i, text[8];
        EVP_EncodeBlock(text, &byte, 1);
        if (!bytes_format(file, error, "%s %d\n", (const char *)text, i)) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Error error;
    Bytes file = {0}, text = {0};
    Tokens tokens = {0};
    Tokenizer *tokenizer = NULL;
    if (append_bytes(&file, &error) && bytes_append(&file, data, size, &error))
        tokenizer =
            tiktoken_parse("cl100k_base.tiktoken", (const char *)file.data, file.size, &error);
    if (tokenizer && (!tokenizer_encode(tokenizer, file.data, file.size, true, &tokens, &error) ||
                      !tokenizer_decode(tokenizer, tokens.ids, tokens.count, &text, &error) ||
                      text.size != file.size || memcmp(text.data, file.data, text.size)))
        __builtin_trap();
    tokenizer_free(tokenizer);
    tokens_free(&tokens);
    bytes_free(&text);
    bytes_free(&file);
    return 0;
}
