#include "text/readers.h"

#include <string.h>

#include "text/alphabet.h"

bool read_token(Tokenizer *tokenizer, const char *text, size_t size, const json_t *id,
                TokenKind kind, Error *error) {
    if (!json_is_integer(id))
        return fail(error, "the id of token '%.100s' is not a whole number", text);
    Bytes bytes = {0};
    bool done = reserve(&bytes.data, &bytes.capacity, size + 1, 1, error);
    if (done && !alphabet_read(&bytes, text, size))
        done = fail(error,
                    "token '%.100s' is not written in GPT-2's byte alphabet; only byte-level "
                    "BPE tokenizers can be read",
                    text);
    done = done && tokenizer_add_token(tokenizer, json_integer_value(id), bytes.data, bytes.size,
                                       kind, error);
    bytes_free(&bytes);
    return done;
}

static int64_t find_written(const Tokenizer *tokenizer, const char *text, size_t size,
                            Bytes *scratch, Error *error) {
    scratch->size = 0;
    if (!reserve(&scratch->data, &scratch->capacity, size + 1, 1, error)) return -1;
    int64_t id = alphabet_read(scratch, text, size)
                     ? tokenizer_find(tokenizer, scratch->data, scratch->size)
                     : -1;
    if (id < 0)
        fail(error, "merge %zu names '%.*s', which is not in the vocabulary",
             tokenizer->merge_count, (int)(size < 100 ? size : 100), text);
    return id;
}

bool read_merge(Tokenizer *tokenizer, const char *left, size_t left_size, const char *right,
                size_t right_size, Error *error) {
    Bytes scratch = {0};
    int64_t first = find_written(tokenizer, left, left_size, &scratch, error);
    int64_t second = first < 0 ? -1 : find_written(tokenizer, right, right_size, &scratch, error);
    bytes_free(&scratch);
    return second >= 0 && tokenizer_add_merge(tokenizer, (uint32_t)first, (uint32_t)second, error);
}

bool read_merge_line(Tokenizer *tokenizer, const char *line, size_t size, Error *error) {
    const char *space = memchr(line, ' ', size);
    if (!space)
        return fail(error, "merge %zu, '%.*s', is not two tokens with a space between",
                    tokenizer->merge_count, (int)(size < 100 ? size : 100), line);
    size_t left = (size_t)(space - line);
    return read_merge(tokenizer, line, left, space + 1, size - left - 1, error);
}
