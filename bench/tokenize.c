/* tokenize: how fast hearth's tokenizer is on one thread. Prints a line of JSON for each file, and writes
 * the ids as uint32 beside it. Usage: tokenize TOKENIZER ROUNDS FILE... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "text/tokenizer.h"

static bool measure(const Tokenizer *tokenizer, const char *path, long rounds, Error *error) {
    Bytes text = {0};
    Tokens tokens = {0};
    bool done = file_read(path, SIZE_MAX, &text, error);
    double best = 0;
    for (long round = 0; done && round < rounds; round++) {
        tokens.count = 0;
        double started = seconds_now();
        done = tokenizer_encode(tokenizer, text.data, text.size, false, &tokens, error);
        double seconds = seconds_now() - started;
        if (!round || seconds < best) best = seconds;
    }
    char *out = malloc(strlen(path) + 5);
    if (done && out) {
        snprintf(out, strlen(path) + 5, "%s.ids", path);
        done = file_write(out, tokens.ids, tokens.count * sizeof *tokens.ids, error);
    }
    if (done)
        printf("{\"bytes\": %zu, \"tokens\": %zu, \"seconds\": %.6f}\n", text.size, tokens.count,
               best);
    free(out);
    tokens_free(&tokens);
    bytes_free(&text);
    return done;
}

int main(int argc, char **argv) {
    Error error;
    if (argc < 4) {
        fprintf(stderr, "Usage: tokenize TOKENIZER ROUNDS FILE...\n");
        return 2;
    }
    Tokenizer *tokenizer = tokenizer_open(argv[1], &error);
    bool done = tokenizer != NULL;
    for (int i = 3; done && i < argc; i++)
        done = measure(tokenizer, argv[i], strtol(argv[2], NULL, 10), &error);
    tokenizer_free(tokenizer);
    if (!done) fprintf(stderr, "tokenize: %s\n", error.message);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
