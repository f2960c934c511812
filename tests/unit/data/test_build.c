/* data build, with a tokenizer whose ids below 256 are the bytes. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "data/build.h"
#include "data/dataset.h"
#include "faults.h"

static Tokenizer *narrow, *wide; /* <|endoftext|> is 50256 and 100257 */

static Tokenizer *byte_tokenizer(const char *name) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    Error error;
    Bytes text = {0};
    for (unsigned i = 0; i < 256; i++)
        assert_true(
            bytes_format(&text, &error, "%c%c== %u\n", digits[i >> 2], digits[(i & 3) << 4], i));
    assert_done(file_write(test_path(name), text.data, text.size, &error), error);
    bytes_free(&text);
    Tokenizer *tokenizer = tokenizer_open(test_path(name), &error);
    assert_done(tokenizer, error);
    return tokenizer;
}

static const char *put(const char *name, const void *data, size_t size) {
    Error error;
    assert_done(file_write(test_path(name), data, size, &error), error);
    return test_path(name);
}

/* JSON lines of `count` documents; document i is "document i" and up to 300 letters more. */
static const char *put_documents(const char *name, int count) {
    Error error;
    Bytes lines = {0};
    for (int i = 0; i < count; i++)
        assert_true(bytes_format(&lines, &error, "{\"text\":\"document %d %0*d\"}\n", i,
                                 i * 7919 % 300 + 1, i));
    const char *path = put(name, lines.data, lines.size);
    bytes_free(&lines);
    return path;
}

static BuildSettings settings_for(const char *name) {
    return (BuildSettings){.directory = test_path(name),
                           .validation_fraction = 0.1,
                           .shard_tokens = 1000,
                           .threads = 2};
}

static Dataset *build(const Tokenizer *tokenizer, const char *input, BuildSettings settings) {
    Error error;
    BuildSummary summary;
    assert_done(dataset_build(tokenizer, &input, 1, &settings, &summary, &error), error);
    Dataset *dataset = dataset_open(settings.directory, &error);
    assert_done(dataset, error);
    for (int s = 0; s < 2; s++) {
        assert_int_equal(summary.documents[s], dataset_documents(dataset, (Split)s));
        assert_int_equal(summary.tokens[s], dataset_tokens(dataset, (Split)s));
        assert_int_equal(summary.bytes[s], dataset_bytes(dataset, (Split)s));
    }
    assert_done(dataset_verify(dataset, &error), error);
    return dataset;
}

static void refuses(const char *input, BuildSettings settings, const char *message) {
    Error error;
    BuildSummary summary;
    assert_fails_with(dataset_build(narrow, &input, 1, &settings, &summary, &error), error,
                      message);
}

/* A document's tokens as text, without its separator. */
static char *document_text(const Dataset *dataset, Split split, int64_t document,
                           uint32_t separator) {
    static char text[4096];
    static uint32_t tokens[4096];
    Error error;
    const int64_t *starts = dataset_document_starts(dataset, split);
    int64_t end = document + 1 < dataset_documents(dataset, split) ? starts[document + 1]
                                                                   : dataset_tokens(dataset, split);
    int64_t count = end - starts[document];
    assert_done(dataset_read(dataset, split, starts[document], count, tokens, &error), error);
    assert_int_equal(tokens[0], separator);
    for (int64_t i = 1; i < count; i++) text[i - 1] = (char)tokens[i];
    text[count - 1] = 0;
    return text;
}

static void every_document_is_there(const Tokenizer *tokenizer, const char *name,
                                    uint32_t separator) {
    enum { COUNT = 1000 };
    Error error;
    char seen[COUNT] = {0};
    Dataset *dataset = build(tokenizer, put_documents("many.jsonl", COUNT), settings_for(name));
    assert_int_equal(dataset_documents(dataset, SPLIT_TRAIN) +
                         dataset_documents(dataset, SPLIT_VALIDATION),
                     COUNT);
    assert_in_range(dataset_documents(dataset, SPLIT_VALIDATION), 70, 130);
    for (int s = 0; s < 2; s++) {
        int last = -1;
        for (int64_t d = 0; d < dataset_documents(dataset, (Split)s); d++) {
            int number, again;
            const char *text = document_text(dataset, (Split)s, d, separator);
            assert_int_equal(sscanf(text, "document %d %d", &number, &again), 2);
            assert_int_equal(number, again);
            assert_true(number > last); /* in order */
            assert_int_equal(seen[number]++, 0);
            last = number;
        }
    }
    assert_int_equal(dataset_vocab_size(dataset), separator + (separator == 50256 ? 1 : 20));
    char hash[SHA256_TEXT];
    tokenizer_hash(tokenizer, hash);
    assert_string_equal(dataset_tokenizer_hash(dataset), hash);
    char *copy = path_join(dataset_directory(dataset), "tokenizer.json", &error);
    assert_true(path_exists(copy));
    free(copy);
    dataset_free(dataset);
}

static void test_16_bit_shards(void **state) {
    (void)state;
    every_document_is_there(narrow, "narrow", 50256);
}

static void test_32_bit_shards(void **state) {
    (void)state;
    every_document_is_there(wide, "wide", 100257);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    const char *input = put_documents("threads.jsonl", 20000); /* several batches */
    Dataset *first = NULL;
    for (int threads = 1; threads <= 8; threads *= 2) {
        BuildSettings settings = settings_for("threads");
        settings.threads = threads;
        settings.shard_tokens = 100000;
        settings.overwrite = threads > 1;
        Dataset *dataset = build(narrow, input, settings);
        if (!first) first = dataset;
        assert_string_equal(dataset_fingerprint(dataset), dataset_fingerprint(first));
        if (dataset != first) dataset_free(dataset);
    }
    dataset_free(first);
}

static void test_validation_is_never_empty(void **state) {
    (void)state;
    BuildSettings settings = settings_for("two");
    settings.validation_fraction = 0.0001;
    Dataset *dataset = build(narrow, put_documents("two.jsonl", 2), settings);
    assert_int_equal(dataset_documents(dataset, SPLIT_TRAIN), 1);
    assert_int_equal(dataset_documents(dataset, SPLIT_VALIDATION), 1);
    dataset_free(dataset);
    settings.directory = test_path("none");
    settings.validation_fraction = 0;
    dataset = build(narrow, test_path("two.jsonl"), settings);
    assert_int_equal(dataset_documents(dataset, SPLIT_VALIDATION), 0);
    assert_int_equal(dataset_tokens(dataset, SPLIT_VALIDATION), 0);
    dataset_free(dataset);
}

/* One text is divided at a line; both parts together are the text. */
static void test_single_document(void **state) {
    (void)state;
    Error error;
    Bytes text = {0};
    for (int i = 0; i < 100; i++) assert_true(bytes_format(&text, &error, "line number %d\n", i));
    const char *input = put("single.txt", text.data, text.size);
    Dataset *dataset = build(narrow, input, settings_for("single"));
    assert_int_equal(dataset_documents(dataset, SPLIT_TRAIN), 1);
    assert_int_equal(dataset_documents(dataset, SPLIT_VALIDATION), 1);
    int64_t held_out = dataset_bytes(dataset, SPLIT_VALIDATION);
    assert_in_range(held_out, text.size / 20, text.size / 10);
    Bytes joined = {0};
    for (int s = 0; s < 2; s++) {
        char *part = document_text(dataset, (Split)s, 0, 50256);
        assert_memory_equal(part, "line", 4);
        assert_int_equal(strlen(part), dataset_bytes(dataset, (Split)s));
        assert_true(bytes_append(&joined, part, strlen(part), &error));
    }
    assert_int_equal(joined.size, text.size);
    assert_memory_equal(joined.data, text.data, text.size);
    dataset_free(dataset);
    bytes_free(&joined), bytes_free(&text);

    dataset = build(narrow, put("words.txt", "aaaaaaaa bbbb cccc", 18), settings_for("words"));
    assert_int_equal(dataset_bytes(dataset, SPLIT_VALIDATION), 1); /* no space in the last tenth */
    dataset_free(dataset);
    dataset = build(narrow, put("letter.txt", "a", 1), settings_for("letter"));
    assert_int_equal(dataset_documents(dataset, SPLIT_TRAIN), 1);
    assert_int_equal(dataset_documents(dataset, SPLIT_VALIDATION), 0);
    dataset_free(dataset);
}

/* Where a long text is cut into pieces does not show in its tokens. */
static void test_pieces_do_not_matter(void **state) {
    (void)state;
    const char *input = shared_data("text/tinyshakespeare.txt");
    const char *path = shared_data("tokenizer/gpt2");
    if (!input || !path) skip();
    Error error;
    Bytes text = {0};
    Tokens whole = {0};
    Tokenizer *tokenizer = tokenizer_open(path, &error);
    assert_done(tokenizer, error);
    assert_done(file_read(input, 1 << 24, &text, &error), error);
    assert_true(text.size > READER_PIECE);
    assert_done(tokenizer_encode(tokenizer, text.data, text.size, false, &whole, &error), error);
    BuildSettings settings = settings_for("pieces");
    settings.validation_fraction = 0;
    settings.shard_tokens = 100000;
    Dataset *dataset = build(tokenizer, input, settings);
    int64_t count = dataset_tokens(dataset, SPLIT_TRAIN) - 1;
    assert_int_equal(count, whole.count);
    uint32_t *tokens = test_malloc((size_t)count * sizeof *tokens);
    assert_done(dataset_read(dataset, SPLIT_TRAIN, 1, count, tokens, &error), error);
    assert_memory_equal(tokens, whole.ids, (size_t)count * sizeof *tokens);
    test_free(tokens);
    dataset_free(dataset);
    tokens_free(&whole);
    bytes_free(&text);
    tokenizer_free(tokenizer);
}

static void test_bytes_are_kept(void **state) {
    (void)state;
    static const char odd[] = "a\xFF\xC3(\x01\r\n <|endoftext|>\xF0\x9F";
    BuildSettings settings = settings_for("odd");
    settings.validation_fraction = 0;
    Dataset *dataset = build(narrow, put("odd.txt", odd, strlen(odd)), settings);
    assert_string_equal(document_text(dataset, SPLIT_TRAIN, 0, 50256), odd);
    dataset_free(dataset);
}

static void test_refusals(void **state) {
    (void)state;
    Error error;
    const char *good = put_documents("good.jsonl", 3);
    refuses(put("empty.txt", "", 0), settings_for("out"), "empty.txt is empty");
    refuses(put("blank.jsonl", "\n\n", 2), settings_for("out"), "there is no text in the inputs");
    refuses(test_path("missing.txt"), settings_for("out"), "missing.txt: No such file");
    refuses(put("bad.jsonl", "{\"text\":\"a\"}\n{\"text\"", 20), settings_for("out"),
            "bad.jsonl:2:");
    assert_false(path_exists(test_path("out")));
    assert_false(path_exists(test_path("out.building")));

    put("plain", "x", 1);
    refuses(good, settings_for("plain"), "exists and is not a directory");
    assert_done(directory_create(test_path("other"), &error), error);
    put("other/thing", "x", 1);
    refuses(good, settings_for("other"), "other is not empty");
    BuildSettings settings = settings_for("other");
    settings.overwrite = true;
    refuses(good, settings, "holds something else than a dataset");
    assert_true(path_exists(test_path("other/thing")));
    assert_done(directory_create(test_path("vacant"), &error), error);
    dataset_free(build(narrow, good, settings_for("vacant/")));
    refuses(good, settings_for("vacant"), "vacant is not empty");
    refuses(good, (BuildSettings){.directory = "", .shard_tokens = 10, .threads = 1},
            "--out is empty");
}

static int count_entries(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count - 2;
}

/* Whatever fails, the dataset that was there stays whole and nothing else is left behind. */
static void test_every_failure_keeps_the_old_dataset(void **state) {
    (void)state;
    Error error;
    assert_done(directory_create(test_path("faults"), &error), error);
    const char *old = put_documents("old.jsonl", 5), *new = put_documents("new.jsonl", 30);
    BuildSettings settings = settings_for("faults/set");
    settings.overwrite = true;
    settings.threads = 1;
    Dataset *dataset = build(narrow, old, settings);
    char before[SHA256_TEXT];
    snprintf(before, sizeof before, "%s", dataset_fingerprint(dataset));
    dataset_free(dataset);
    for (int functions = FAULTS_MEMORY; functions <= FAULTS_FILES; functions++) {
        int64_t failures = 0;
        for (int64_t call = 1;; call++) {
            BuildSummary summary;
            faults_arm(functions, FAULT_ONCE, call);
            bool done = dataset_build(narrow, &new, 1, &settings, &summary, &error);
            if (!faults_disarm()) break;
            assert_int_equal(count_entries(test_path("faults")), 1);
            Error other;
            dataset = dataset_open(settings.directory, &other);
            assert_done(dataset, other);
            bool replaced = strcmp(dataset_fingerprint(dataset), before) != 0;
            dataset_free(dataset);
            if (done)
                assert_true(replaced); /* the failed call did not matter */
            else
                failures++;
            if (!done && replaced)
                assert_non_null(strstr(error.message, "directory")); /* last sync */
            if (replaced) dataset_free(build(narrow, old, settings));
        }
        assert_true(failures > 20);
    }
}

/* Killed at any moment, it leaves the old dataset or the new one, and the next build succeeds. */
static void test_kill_at_any_moment(void **state) {
    (void)state;
    Error error;
    const char *old = put_documents("old.jsonl", 5), *new = put_documents("new.jsonl", 30);
    BuildSettings settings = settings_for("killed");
    settings.overwrite = true;
    settings.threads = 1;
    dataset_free(build(narrow, old, settings));
    for (int64_t call = 1;; call++) {
        pid_t child = fork();
        if (!child) {
            BuildSummary summary;
            faults_arm(FAULTS_FILES, FAULT_KILL, call);
            _exit(!dataset_build(narrow, &new, 1, &settings, &summary, &error));
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        Dataset *dataset = dataset_open(settings.directory, &error);
        assert_done(dataset, error);
        assert_done(dataset_verify(dataset, &error), error);
        int64_t documents =
            dataset_documents(dataset, SPLIT_TRAIN) + dataset_documents(dataset, SPLIT_VALIDATION);
        assert_true(documents == 5 || documents == 30);
        dataset_free(dataset);
        if (WEXITSTATUS(status) != FAULT_KILL_STATUS) {
            assert_int_equal(WEXITSTATUS(status), 0);
            assert_int_equal(documents, 30);
            break;
        }
        assert_true(call < 1000);
    }
    assert_false(path_exists(test_path("killed.building")));
}

static int set_up(void **state) {
    (void)state;
    log_set_quiet(true);
    if (path_is_directory("/dev/shm")) setenv("TMPDIR", "/dev/shm", 1); /* thousands of fsync() */
    narrow = byte_tokenizer("r50k_base.tiktoken");
    wide = byte_tokenizer("cl100k_base.tiktoken");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tokenizer_free(narrow);
    tokenizer_free(wide);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_16_bit_shards),
        cmocka_unit_test(test_32_bit_shards),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_validation_is_never_empty),
        cmocka_unit_test(test_single_document),
        cmocka_unit_test(test_pieces_do_not_matter),
        cmocka_unit_test(test_bytes_are_kept),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_every_failure_keeps_the_old_dataset),
        cmocka_unit_test(test_kill_at_any_moment),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
