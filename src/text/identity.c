/* The hash that says whether two tokenizers give the same ids. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "text/vocabulary.h"

static void add(EVP_MD_CTX *digest, const void *data, size_t size) {
    EVP_DigestUpdate(digest, data, size);
}

static void add_number(EVP_MD_CTX *digest, uint32_t value) {
    uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                        (uint8_t)(value >> 24)};
    add(digest, bytes, sizeof bytes);
}

void tokenizer_hash(const Tokenizer *tokenizer, char out[SHA256_TEXT]) {
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    if (!digest || EVP_DigestInit_ex(digest, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(digest);
        memset(out, 0, SHA256_TEXT); /* equal to no tokenizer's hash */
        return;
    }
    const char *pattern = pattern_text(tokenizer->pattern);
    add(digest, pattern, strlen(pattern) + 1);
    add_number(digest, tokenizer->whole_first);
    add_number(digest, (uint32_t)tokenizer->vocab_size);
    for (size_t id = 0; id < tokenizer->vocab_size; id++) {
        const Token *token = &tokenizer->tokens[id];
        add_number(digest, token->kind);
        add_number(digest, token->size);
        if (token->size) add(digest, tokenizer->token_bytes[id], token->size);
    }
    for (size_t i = 0; i < tokenizer->merge_count; i++) {
        add_number(digest, tokenizer->merges[i].left);
        add_number(digest, tokenizer->merges[i].right);
        add_number(digest, tokenizer->merges[i].result);
    }
    uint8_t raw[32];
    EVP_DigestFinal_ex(digest, raw, NULL);
    EVP_MD_CTX_free(digest);
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", raw[i]);
}
