/* GPT-2's pair of files: vocab.json (or encoder.json), token to id in the byte alphabet, and
 * merges.txt (or vocab.bpe), one "left right" a line in order of rank. */
#include <stdlib.h>
#include <string.h>

#include "text/alphabet.h"
#include "text/readers.h"

enum { MERGES_MOST = 256 << 20 }; /* bytes */

static char *merges_path(const char *path, Error *error) {
    static const char *const names[] = {"merges.txt", "vocab.bpe"};
    char *directory = copy_string(path, error);
    if (!directory) return NULL;
    char *slash = strrchr(directory, '/');
    if (slash) slash[slash == directory] = 0; /* the root directory stays "/" */
    char *found = NULL;
    bool failed = false;
    for (int i = 0; i < 2 && !found && !failed; i++) {
        found = path_join(slash ? directory : ".", names[i], error);
        failed = !found;
        if (found && !path_exists(found)) {
            free(found);
            found = NULL;
        }
    }
    free(directory);
    if (!found && !failed)
        fail(error, "%s needs merges.txt or vocab.bpe in the same directory", path);
    return found;
}

static bool read_merges(Tokenizer *tokenizer, const char *path, Error *error) {
    Bytes file = {0};
    bool done = file_read(path, MERGES_MOST, &file, error);
    const char *at = (const char *)file.data;
    for (size_t line = 1; done && *at; line++) {
        size_t length = strcspn(at, "\n"),
               size = length && at[length - 1] == '\r' ? length - 1 : length;
        bool comment = line == 1 && !strncmp(at, "#version", 8);
        if (size && !comment) done = read_merge_line(tokenizer, at, size, error);
        if (!done) fail_within(error, "%s:%zu", path, line);
        at += length + (at[length] == '\n');
    }
    bytes_free(&file);
    return done;
}

/* The files do not say which tokens are special: those spelled <|like this|>. */
static TokenKind kind_of(const char *token, size_t size) {
    bool special = size > 4 && !memcmp(token, "<|", 2) && !memcmp(token + size - 2, "|>", 2);
    return special ? TOKEN_SPECIAL : TOKEN_TEXT;
}

static bool read_vocabulary(Tokenizer *tokenizer, const json_t *vocabulary, Error *error) {
    void *at = json_object_iter((json_t *)(uintptr_t)vocabulary);
    for (; at; at = json_object_iter_next((json_t *)(uintptr_t)vocabulary, at)) {
        const char *text = json_object_iter_key(at);
        size_t size = json_object_iter_key_len(at);
        if (!read_token(tokenizer, text, size, json_object_iter_value(at), kind_of(text, size),
                        error))
            return false;
    }
    return true;
}

Tokenizer *gpt2_open(const char *path, const json_t *vocabulary, Error *error) {
    char *merges = merges_path(path, error);
    Tokenizer *tokenizer = merges ? tokenizer_new(error) : NULL;
    bool done = tokenizer && read_vocabulary(tokenizer, vocabulary, error) &&
                tokenizer_index(tokenizer, error);
    if (tokenizer && !done) fail_within(error, "%s", path);
    done =
        done && read_merges(tokenizer, merges, error) && tokenizer_finish(tokenizer, "gpt2", error);
    free(merges);
    if (done) return tokenizer;
    tokenizer_free(tokenizer);
    return NULL;
}
