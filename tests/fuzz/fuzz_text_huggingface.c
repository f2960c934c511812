/* Any JSON as a tokenizer.json: refused, or a tokenizer that gives every byte back. */
#include "base/json.h"
#include "text/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Error error;
    json_t *root = json_read_bytes("tokenizer.json", data, size, &error);
    if (!root) return 0;
    Tokenizer *tokenizer = huggingface_open("tokenizer.json", root, &error);
    json_decref(root);
    if (!tokenizer) return 0;
    Tokens tokens = {0};
    Bytes text = {0};
    if (tokenizer_encode(tokenizer, data, size, true, &tokens, &error) &&
        (!tokenizer_decode(tokenizer, tokens.ids, tokens.count, &text, &error) ||
         text.size != size))
        __builtin_trap();
    tokens_free(&tokens);
    bytes_free(&text);
    tokenizer_free(tokenizer);
    return 0;
}
