/* Encoding: published vectors, bytes of every kind, long pieces, special tokens. */
#include "text_support.h"

#include "base/random.h"
#include "text/splitter.h"

static const char sample[] = "the cat sat on the mat; the hat's 1234 \xC3\xA9t\xC3\xA9 \n\n  end\n";

static Tokenizer *small_tokenizer(const char *pattern) {
    return train_on(sample, sizeof sample - 1, pattern, 280);
}

/* The ids that follow `at`, up to the end of the line. */
static Tokens parse_line(const char *at) {
    Error error;
    Tokens tokens = {0};
    for (size_t stop = strcspn(at, "\n"); stop;) {
        size_t skip = strspn(at, " [],");
        if (skip >= stop) break;
        char *end;
        assert_done(reserve(&tokens.ids, &tokens.capacity, tokens.count + 1, 4, &error), error);
        tokens.ids[tokens.count++] = (uint32_t)strtoul(at + skip, &end, 10);
        stop -= (size_t)(end - at);
        at = end;
    }
    return tokens;
}

static void assert_ids(const Tokenizer *tokenizer, const char *text, size_t size,
                       const char *expected) {
    Tokens wanted = parse_line(expected), found = encode(tokenizer, text, size, false);
    assert_int_equal(found.count, wanted.count);
    for (size_t i = 0; i < wanted.count; i++) assert_int_equal(found.ids[i], wanted.ids[i]);
    tokens_free(&wanted);
    tokens_free(&found);
}

static int check_plans(const char *encoding, const Tokenizer *tokenizer, const Bytes *file) {
    char head[64];
    int cases = 0;
    snprintf(head, sizeof head, "EncodingName: %s\nSample: ", encoding);
    for (const char *at = (const char *)file->data; (at = strstr(at, head)); cases++) {
        const char *text = at + strlen(head), *end = strstr(text, "\nEncoded: ");
        assert_non_null(end);
        assert_ids(tokenizer, text, (size_t)(end - text), end + strlen("\nEncoded: "));
        at = end;
    }
    return cases;
}

static void tiktoken_plans(void **state) {
    (void)state;
    const char *path = shared_data("tokenizer/tiktoken/TestPlans.txt");
    if (!path) skip();
    Error error;
    Bytes file = {0};
    assert_done(file_read(path, 1 << 20, &file, &error), error);
    Tokenizer *r50k = open_shared("tokenizer/tiktoken/r50k_base.tiktoken");
    Tokenizer *cl100k = open_shared("tokenizer/tiktoken/cl100k_base.tiktoken");
    assert_int_equal(check_plans("r50k_base", r50k, &file), 64);
    assert_int_equal(check_plans("cl100k_base", cl100k, &file), 64);
    tokenizer_free(r50k);
    tokenizer_free(cl100k);
    bytes_free(&file);
}

static void llama_cpp_vectors(void **state) {
    (void)state;
    static const char separator[] = "\n__ggml_vocab_test__\n";
    const char *input = shared_data("tokenizer/ggml-vocab/ggml-vocab-gpt-2.gguf.inp");
    const char *output = shared_data("tokenizer/ggml-vocab/ggml-vocab-gpt-2.gguf.out");
    Tokenizer *tokenizer = open_shared("tokenizer/gpt2");
    if (!input || !output || !tokenizer) skip();
    Error error;
    Bytes texts = {0}, ids = {0};
    assert_done(file_read(input, 1 << 20, &texts, &error), error);
    assert_done(file_read(output, 1 << 20, &ids, &error), error);
    const char *text = (const char *)texts.data, *line = (const char *)ids.data, *end;
    int cases = 0;
    for (; (end = strstr(text, separator)); text = end + sizeof separator - 1, cases++) {
        assert_ids(tokenizer, text, (size_t)(end - text), line);
        line = strchr(line, '\n') + 1;
    }
    assert_int_equal(cases, 46);
    bytes_free(&texts);
    bytes_free(&ids);
    tokenizer_free(tokenizer);
}

static void any_bytes_come_back(void **state) {
    (void)state;
    static const char *const patterns[] = {"gpt2", "gpt4", "nanochat", "o200k", "ab|[0-9]"};
    enum { SIZE = 5000 };
    uint8_t text[SIZE];
    for (int p = 0; p < 5; p++) {
        Tokenizer *tokenizer = small_tokenizer(patterns[p]);
        for (uint32_t round = 0; round < 60; round++) {
            for (uint32_t i = 0; i < SIZE; i++) {
                uint32_t word = random_u32(round, 0, i); /* from any byte to mostly white space */
                text[i] = word >> 8 & 1 ? (uint8_t)word
                                        : (uint8_t) " \n\r\t\0'sl1\xC3\xA9\xF0\x9F"[word % 13];
            }
            assert_round_trip(tokenizer, text, SIZE - round);
        }
        assert_round_trip(tokenizer, "", 0);
        tokenizer_free(tokenizer);
    }
}

/* The valid text around bytes that are not UTF-8 is encoded as if it stood alone. */
static void invalid_bytes_stand_apart(void **state) {
    (void)state;
    static const struct {
        const char *before, *bad, *after;
    } cases[] = {
        {"the cat", "\xFF", "the mat"},     {"the ", "\xC3", " cat"},
        {"cat\n", "\xED\xA0\x80", "\nend"}, {"", "\x80\xBF\x80", "the"},
        {"the", "\xF4\x90\x80\x80", ""},    {"sat", "\xC0\xAF", "sat"},
        {"the", "\xE2\x82", "the"},
    };
    Tokenizer *tokenizer = small_tokenizer("gpt4");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        const char *parts[] = {cases[i].before, cases[i].bad, cases[i].after};
        snprintf(text, sizeof text, "%s%s%s", parts[0], parts[1], parts[2]);
        Tokens whole = encode(tokenizer, text, strlen(text), false);
        size_t at = 0;
        for (int part = 0; part < 3; part++) {
            Tokens piece = encode(tokenizer, parts[part], strlen(parts[part]), false);
            assert_true(at + piece.count <= whole.count);
            if (piece.count) assert_memory_equal(whole.ids + at, piece.ids, 4 * piece.count);
            at += piece.count;
            tokens_free(&piece);
        }
        assert_int_equal(at, whole.count);
        tokens_free(&whole);
    }
    tokenizer_free(tokenizer);
}

static void nul_bytes_are_bytes(void **state) {
    (void)state;
    Tokenizer *tokenizer = small_tokenizer("gpt2");
    assert_true(assert_round_trip(tokenizer, "the\0cat\0\0", 9) >= 5);
    tokenizer_free(tokenizer);
}

/* One piece without an end takes n log n time: quadratic time would take hours here. */
static void a_long_line_is_quick(void **state) {
    (void)state;
    enum { SIZE = 5 << 19 };
    static const char *const patterns[] = {"gpt2", "gpt4", "nanochat", "o200k"};
    static const char *const fills[] = {"a",   " ", "thecatsat", "=", "\xC3\xA9",
                                        " \n", "A", "'s",        "7"};
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (int p = 0; p < 4; p++) {
        Tokenizer *tokenizer = small_tokenizer(patterns[p]);
        for (int f = 0; f < 9; f++) {
            size_t length = strlen(fills[f]);
            for (size_t i = 0; i < SIZE; i++) text[i] = fills[f][i % length];
            assert_round_trip(tokenizer, text, SIZE);
        }
        tokenizer_free(tokenizer);
    }
    free(text);
}

/* The heap and the plain search make the same merges. */
static void long_pieces_merge_as_short_ones(void **state) {
    (void)state;
    enum { SIZE = 4096 };
    char text[SIZE];
    for (uint32_t i = 0; i < SIZE; i++) text[i] = (char)('a' + random_below(7, 0, i, 3));
    Tokenizer *tokenizer = train_on(text, SIZE, "gpt2", 400); /* one piece */
    for (size_t size = 1; size <= 200; size++) {
        /* The definition: again and again the merge of lowest rank, which has the lowest id. */
        uint32_t ids[200];
        size_t count = size;
        for (size_t i = 0; i < size; i++) ids[i] = (uint8_t)text[i];
        for (;;) {
            size_t best = SIZE_MAX;
            int64_t best_id = INT64_MAX;
            for (size_t i = 0; i + 1 < count; i++) {
                size_t left_size, right_size, joined_size;
                char joined[SIZE];
                const uint8_t *left = tokenizer_token(tokenizer, ids[i], &left_size);
                const uint8_t *right = tokenizer_token(tokenizer, ids[i + 1], &right_size);
                memcpy(joined, left, left_size);
                memcpy(joined + left_size, right, right_size);
                joined_size = left_size + right_size;
                for (uint32_t id = 256; id < 399 && id < best_id; id++) {
                    size_t token_size;
                    const uint8_t *token = tokenizer_token(tokenizer, id, &token_size);
                    if (token_size == joined_size && !memcmp(token, joined, token_size))
                        best = i, best_id = id;
                }
            }
            if (best == SIZE_MAX) break;
            ids[best] = (uint32_t)best_id;
            memmove(ids + best + 1, ids + best + 2, (count - best - 2) * sizeof *ids);
            count--;
        }
        Tokens tokens = encode(tokenizer, text, size, false);
        assert_int_equal(tokens.count, count);
        assert_memory_equal(tokens.ids, ids, 4 * count);
        tokens_free(&tokens);
    }
    tokenizer_free(tokenizer);
}

static void specials_only_when_asked(void **state) {
    (void)state;
    Tokenizer *tokenizer = small_tokenizer("nanochat");
    static const char text[] = "the<|bos|>cat<|user_start|><|bos|";
    int64_t bos = tokenizer_special(tokenizer, "<|bos|>");
    assert_int_equal(bos, 271);
    assert_int_equal(tokenizer_document_separator(tokenizer), 271);
    assert_true(tokenizer_is_special(tokenizer, 271));
    assert_false(tokenizer_is_special(tokenizer, 270));
    assert_int_equal(tokenizer_special(tokenizer, "the"), -1);
    Tokens with = encode(tokenizer, text, sizeof text - 1, true);
    Tokens without = encode(tokenizer, text, sizeof text - 1, false);
    int found = 0;
    for (size_t i = 0; i < with.count; i++) found += with.ids[i] >= 271;
    assert_int_equal(found, 2);
    for (size_t i = 0; i < without.count; i++) assert_true(without.ids[i] < 271);
    tokens_free(&with);
    tokens_free(&without);
    tokenizer_free(tokenizer);
}

static void unknown_ids_are_refused(void **state) {
    (void)state;
    Error error;
    Bytes text = {0};
    size_t size;
    Tokenizer *tokenizer = small_tokenizer("gpt2");
    uint32_t ids[] = {65, 280};
    assert_fails_with(tokenizer_decode(tokenizer, ids, 2, &text, &error), error, "id 280");
    assert_null(tokenizer_token(tokenizer, 280, &size));
    bytes_free(&text);
    tokenizer_free(tokenizer);
}

/* (a+)+ backtracks without end: an error rather than a hang. */
static void runaway_patterns_stop(void **state) {
    (void)state;
    Error error;
    Tokens tokens = {0};
    char text[64];
    memset(text, 'a', sizeof text);
    text[63] = '\n';
    Tokenizer *tokenizer = small_tokenizer("gpt2");
    tokenizer_free(tokenizer);
    tokenizer = train_on("x", 1, "(?:a|a|a|a)+b|\\n|x", 257);
    assert_fails_with(tokenizer_encode(tokenizer, text, 64, false, &tokens, &error), error,
                      "use a simpler one");
    assert_int_equal(tokens.count, 0);
    tokens_free(&tokens);
    tokenizer_free(tokenizer);
    assert_fails_with(pattern_compile("(", &error) != NULL, error, "'('");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiktoken_plans),
        cmocka_unit_test(llama_cpp_vectors),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(invalid_bytes_stand_apart),
        cmocka_unit_test(nul_bytes_are_bytes),
        cmocka_unit_test(a_long_line_is_quick),
        cmocka_unit_test(long_pieces_merge_as_short_ones),
        cmocka_unit_test(specials_only_when_asked),
        cmocka_unit_test(unknown_ids_are_refused),
        cmocka_unit_test(runaway_patterns_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
