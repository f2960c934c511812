#include "cmd/held_out.h"

#include <stdlib.h>

#include "data/dataset.h"
#include "text/tokenizer.h"

static bool append_token(const Tokenizer *tokenizer, uint32_t id, Bytes *text, Error *error) {
    size_t size;
    const uint8_t *bytes = tokenizer_token(tokenizer, id, &size);
    return !bytes || tokenizer_is_special(tokenizer, id) || bytes_append(text, bytes, size, error);
}

static bool append_split(const Dataset *dataset, const Tokenizer *tokenizer, Bytes *text,
                         Error *error) {
    enum { AT_A_TIME = 4096 };
    uint32_t ids[AT_A_TIME];
    int64_t end = dataset_tokens(dataset, SPLIT_VALIDATION);
    for (int64_t start = 0; start < end; start += AT_A_TIME) {
        int64_t count = end - start < AT_A_TIME ? end - start : AT_A_TIME;
        if (!dataset_read(dataset, SPLIT_VALIDATION, start, count, ids, error)) return false;
        for (int64_t i = 0; i < count; i++)
            if (!append_token(tokenizer, ids[i], text, error)) return false;
    }
    return true;
}

bool held_out_text(const char *directory, Bytes *text, Error *error) {
    Dataset *dataset = dataset_open(directory, error);
    Tokenizer *tokenizer = dataset ? tokenizer_open(directory, error) : NULL;
    bool done = tokenizer && append_split(dataset, tokenizer, text, error);
    tokenizer_free(tokenizer);
    dataset_free(dataset);
    return done;
}
