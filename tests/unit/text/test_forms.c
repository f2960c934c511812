/* The file forms: the same tokenizer from each, saved and opened again, and what is refused. */
#include "text_support.h"

#include "text/vocabulary.h"

static void forms_have_one_hash(void **state) {
    (void)state;
    Tokenizer *json = open_shared("tokenizer/hf_tokenizer_json/gpt2.tokenizer.json");
    Tokenizer *pair = open_shared("tokenizer/gpt2");
    Tokenizer *ranks = open_shared("tokenizer/tiktoken/r50k_base.tiktoken");
    if (!json || !pair || !ranks) skip();
    assert_same_tokenizer(json, pair);
    assert_same_tokenizer(json, ranks);
    assert_int_equal(tokenizer_vocab_size(ranks), 50257);
    assert_int_equal(tokenizer_document_separator(ranks), 50256);
    tokenizer_free(json);
    tokenizer_free(pair);
    tokenizer_free(ranks);
}

static void assert_saves(const Tokenizer *tokenizer) {
    Error error;
    const char *directory = test_path("saved");
    assert_done(tokenizer_save(tokenizer, directory, &error), error);
    Tokenizer *opened = tokenizer_open(directory, &error);
    assert_done(opened != NULL, error);
    assert_same_tokenizer(tokenizer, opened);
    tokenizer_free(opened);
}

static void saved_is_opened_equal(void **state) {
    (void)state;
    static const char text[] = "some of the text, some of the time: 1234!\n";
    static const char *const patterns[] = {"gpt2", "gpt4", "nanochat", "o200k", "\\w+|\\s"};
    for (int i = 0; i < 5; i++) {
        Tokenizer *tokenizer = train_on(text, sizeof text - 1, patterns[i], 270);
        assert_saves(tokenizer);
        tokenizer_free(tokenizer);
    }
    static const char *const shared[] = {"tokenizer/tiktoken/cl100k_base.tiktoken",
                                         "tokenizer/hf_tokenizer_json/dolma2.tokenizer.json"};
    for (int i = 0; i < 2; i++) {
        Tokenizer *tokenizer = open_shared(shared[i]);
        if (tokenizer) assert_saves(tokenizer);
        tokenizer_free(tokenizer);
    }
}

/* All 256 bytes in base64, then "ab" and "abcd", which no pair of lower rank makes. */
static void ranks_without_merges(void **state) {
    (void)state;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    Error error;
    Bytes file = {0};
    for (int byte = 0; byte < 256; byte++)
        assert_done(bytes_format(&file, &error, "%c%c== %d\n", digits[byte >> 2],
                                 digits[(byte & 3) << 4], byte),
                    error);
    assert_done(bytes_format(&file, &error, "YWI= 256\nYWJjZA== 257\nY2Q= 258\n"), error);
    Tokenizer *tokenizer =
        tiktoken_parse("r50k_base.tiktoken", (const char *)file.data, file.size, &error);
    assert_done(tokenizer != NULL, error);
    /* tiktoken: a piece that is a token is that token; "ab" + "cd" joins to rank 257 as well. */
    static const struct {
        const char *text;
        uint32_t ids[3];
        size_t count;
    } cases[] = {{"abcd", {257}, 1}, {"abcde", {257, 'e'}, 2}, {"abce", {256, 'c', 'e'}, 3}};
    for (int i = 0; i < 3; i++) {
        Tokens tokens = encode(tokenizer, cases[i].text, strlen(cases[i].text), false);
        assert_int_equal(tokens.count, cases[i].count);
        assert_memory_equal(tokens.ids, cases[i].ids, 4 * tokens.count);
        tokens_free(&tokens);
    }
    assert_saves(tokenizer);
    tokenizer_free(tokenizer);
    assert_fails_with(tiktoken_parse("x.tiktoken", "", 0, &error) != NULL, error, "rename");
    assert_fails_with(tiktoken_parse("r50k_base", "YQ== x\n", 7, &error) != NULL, error, "line 1");
    assert_fails_with(tiktoken_parse("r50k_base", "Y!== 1\n", 7, &error) != NULL, error, "base64");
    assert_fails_with(tiktoken_parse("r50k_base", "YQ== 1\nYg== 1\n", 14, &error) != NULL, error,
                      "twice");
    assert_fails_with(tiktoken_parse("r50k_base", "YQ== 99999999999\n", 17, &error) != NULL, error,
                      "token id");
    assert_fails_with(tiktoken_parse("r50k_base", "YQ== 0\n", 7, &error) != NULL, error,
                      "byte 0x00");
    bytes_free(&file);
}

/* A good tokenizer.json with one thing in it replaced. */
static json_t *good_json(void) {
    Error error;
    static bool saved;
    const char *directory = test_path("good");
    if (!saved) {
        Tokenizer *tokenizer = train_on("the the the", 11, "gpt4", 260);
        assert_done(tokenizer_save(tokenizer, directory, &error), error);
        tokenizer_free(tokenizer);
        saved = true;
    }
    json_t *root = json_read_file(test_path("good/tokenizer.json"), 1 << 20, &error);
    assert_done(root != NULL, error);
    return root;
}

static void assert_refused(json_t *root, const char *message) {
    Error error;
    assert_fails_with(huggingface_open("t.json", root, &error) != NULL, error, message);
    assert_non_null(strstr(error.message, "t.json"));
    json_decref(root);
}

static void unsupported_json_is_refused_by_name(void **state) {
    (void)state;
    json_t *root = good_json();
    json_object_set_new(root, "normalizer", json_pack("{ss}", "type", "NFC"));
    assert_refused(root, "normalizer NFC");
    root = good_json();
    json_object_set_new(root, "pre_tokenizer", json_pack("{ss}", "type", "Metaspace"));
    assert_refused(root, "pre_tokenizer Metaspace");
    root = good_json();
    json_object_set_new(root, "pre_tokenizer",
                        json_pack("{ss sb}", "type", "ByteLevel", "add_prefix_space", 1));
    assert_refused(root, "add_prefix_space");
    static const char *const keys[] = {"dropout", "continuing_subword_prefix",
                                       "end_of_word_suffix"};
    for (int i = 0; i < 3; i++) {
        root = good_json();
        json_object_set_new(json_object_get(root, "model"), keys[i], json_string("x"));
        assert_refused(root, keys[i]);
    }
    root = good_json();
    json_object_set_new(json_object_get(root, "model"), "type", json_string("Unigram"));
    assert_refused(root, "Unigram");
    root = good_json();
    json_object_set_new(json_array_get(json_object_get(root, "added_tokens"), 0), "lstrip",
                        json_true());
    assert_refused(root, "lstrip");
}

static void broken_json_is_refused(void **state) {
    (void)state;
    json_t *root = good_json(), *model = json_object_get(root, "model");
    json_array_append_new(json_object_get(model, "merges"), json_string("q z"));
    assert_refused(root, "what they make is no token");
    root = good_json(), model = json_object_get(root, "model");
    json_array_append_new(json_object_get(model, "merges"), json_string("qz"));
    assert_refused(root, "space between");
    root = good_json(), model = json_object_get(root, "model");
    json_array_append_new(json_object_get(model, "merges"), json_pack("[s]", "q"));
    assert_refused(root, "neither");
    root = good_json(), model = json_object_get(root, "model");
    json_object_set_new(json_object_get(model, "vocab"), "new", json_integer(300000000));
    assert_refused(root, "token id 300000000");
    root = good_json(), model = json_object_get(root, "model");
    json_object_set_new(json_object_get(model, "vocab"), "new", json_integer(5));
    assert_refused(root, "twice");
    root = good_json(), model = json_object_get(root, "model");
    json_object_set_new(json_object_get(model, "vocab"), "\xE6\x97\xA5", json_integer(300));
    assert_refused(root, "byte alphabet");
    root = good_json(), model = json_object_get(root, "model");
    json_object_del(json_object_get(model, "vocab"), "q");
    assert_refused(root, "byte 0x71");
}

static void merges_may_be_pairs(void **state) {
    (void)state;
    Error error;
    json_t *root = good_json(), *merges = json_array();
    json_t *old = json_object_get(json_object_get(root, "model"), "merges");
    Tokenizer *strings = huggingface_open("t.json", root, &error);
    for (size_t i = 0; i < json_array_size(old); i++) {
        const char *text = json_string_value(json_array_get(old, i)), *space = strchr(text, ' ');
        json_array_append_new(merges, json_pack("[s#s]", text, (int)(space - text), space + 1));
    }
    json_object_set_new(json_object_get(root, "model"), "merges", merges);
    Tokenizer *pairs = huggingface_open("t.json", root, &error);
    assert_done(strings && pairs, error);
    assert_same_tokenizer(strings, pairs);
    tokenizer_free(strings);
    tokenizer_free(pairs);
    json_decref(root);
}

static void missing_files_are_named(void **state) {
    (void)state;
    Error error;
    assert_fails_with(tokenizer_open(test_directory(), &error) != NULL, error, "tokenizer.json");
    assert_fails_with(tokenizer_open(test_path("none.json"), &error) != NULL, error, "none.json");
    assert_done(file_write(test_path("vocab.json"), "{}", 2, &error), error);
    assert_fails_with(tokenizer_open(test_path("vocab.json"), &error) != NULL, error, "merges.txt");
    assert_fails_with(tokenizer_open(test_path("merges.txt"), &error) != NULL, error, "vocab.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_have_one_hash),
        cmocka_unit_test(saved_is_opened_equal),
        cmocka_unit_test(ranks_without_merges),
        cmocka_unit_test(unsupported_json_is_refused_by_name),
        cmocka_unit_test(broken_json_is_refused),
        cmocka_unit_test(merges_may_be_pairs),
        cmocka_unit_test(missing_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
