/* The ids of the peers' own libraries: every tokenizer of the shared data on every text of it. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

typedef struct Golden {
    char tokenizer[128], text[128], mode[16], sha256[SHA256_TEXT];
    size_t count;
} Golden;

static void hash_ids(const Tokens *tokens, char out[SHA256_TEXT]) {
    uint8_t *bytes = malloc(4 * tokens->count + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < 4 * tokens->count; i++)
        bytes[i] = (uint8_t)(tokens->ids[i / 4] >> (8 * (i % 4)));
    sha256_bytes(bytes, 4 * tokens->count, out);
    free(bytes);
}

static void check(const Tokenizer *tokenizer, const Golden *golden) {
    Error error;
    FileMap text;
    Tokens tokens = {0};
    Bytes decoded = {0};
    char sha256[SHA256_TEXT];
    const char *path = shared_data(golden->text);
    assert_non_null(path);
    assert_done(file_map(&text, path, &error), error);
    bool specials = !strcmp(golden->mode, "specials");
    assert_done(tokenizer_encode(tokenizer, text.data, text.size, specials, &tokens, &error),
                error);
    hash_ids(&tokens, sha256);
    if (tokens.count != golden->count || strcmp(sha256, golden->sha256))
        fail_msg("%s on %s: %zu ids, %s; the peer has %zu, %s", golden->tokenizer, golden->text,
                 tokens.count, sha256, golden->count, golden->sha256);
    assert_done(tokenizer_decode(tokenizer, tokens.ids, tokens.count, &decoded, &error), error);
    assert_int_equal(decoded.size, text.size);
    assert_memory_equal(decoded.data, text.data, text.size);
    bytes_free(&decoded);
    tokens_free(&tokens);
    file_unmap(&text);
}

static void ids_equal_the_peers(void **state) {
    (void)state;
    if (!shared_data("tokenizer") || !shared_data("text")) skip();
    FILE *file = fopen(HEARTH_SOURCE "/tests/golden/tokenizer/ids.txt", "r");
    assert_non_null(file);
    Golden golden;
    Tokenizer *tokenizer = NULL;
    char opened[128] = "";
    int checked = 0;
    while (fscanf(file, "%127s %127s %15s %zu %64s", golden.tokenizer, golden.text, golden.mode,
                  &golden.count, golden.sha256) == 5) {
        if (strcmp(opened, golden.tokenizer)) {
            Error error;
            char name[160];
            snprintf(name, sizeof name, "tokenizer/%s", golden.tokenizer);
            const char *path = shared_data(name);
            assert_non_null(path);
            tokenizer_free(tokenizer);
            tokenizer = tokenizer_open(path, &error);
            assert_done(tokenizer != NULL, error);
            strcpy(opened, golden.tokenizer);
        }
        check(tokenizer, &golden);
        checked++;
    }
    assert_true(checked >= 25);
    tokenizer_free(tokenizer);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids_equal_the_peers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
