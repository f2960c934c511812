/* Finds out which form a tokenizer is in. */
#include <stdlib.h>
#include <string.h>

#include "text/vocabulary.h"

enum { JSON_MOST = 256 << 20 }; /* bytes */

static Tokenizer *open_json(const char *path, Error *error) {
    json_t *root = json_read_file(path, JSON_MOST, error);
    if (!root) return NULL;
    bool huggingface = json_is_object(json_object_get(root, "model"));
    Tokenizer *tokenizer =
        huggingface ? huggingface_open(path, root, error) : gpt2_open(path, root, error);
    json_decref(root);
    return tokenizer;
}

static Tokenizer *open_directory(const char *path, Error *error) {
    static const char *const names[] = {"tokenizer.json", "vocab.json", "encoder.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *file = path_join(path, names[i], error);
        if (!file) return NULL;
        bool found = path_exists(file);
        Tokenizer *tokenizer = found ? open_json(file, error) : NULL;
        free(file);
        if (found) return tokenizer;
    }
    fail(error,
         "%s holds no tokenizer: expected tokenizer.json, or vocab.json or encoder.json with "
         "merges.txt or vocab.bpe",
         path);
    return NULL;
}

static bool ends_with(const char *text, const char *end) {
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && !strcmp(text + size - end_size, end);
}

Tokenizer *tokenizer_open(const char *path, Error *error) {
    if (path_is_directory(path)) return open_directory(path, error);
    if (ends_with(path, ".tiktoken")) return tiktoken_open(path, error);
    if (ends_with(path, "merges.txt") || ends_with(path, "vocab.bpe")) {
        fail(error, "%s holds only merges; name the vocab.json or encoder.json beside it", path);
        return NULL;
    }
    return open_json(path, error);
}

bool tokenizer_open_if_any(const char *directory, Tokenizer **tokenizer, Error *error) {
    char *path = path_join(directory, "tokenizer.json", error);
    bool done = path != NULL;
    *tokenizer = NULL;
    if (path && path_exists(path)) done = (*tokenizer = tokenizer_open(path, error)) != NULL;
    free(path);
    return done;
}
