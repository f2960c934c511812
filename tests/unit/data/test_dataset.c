/* Opening and reading datasets, whole and damaged. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset.h"
#include "make_dataset.h"

static const int64_t lengths[] = {3, 40, 1, 1, 25, 30};
enum { DOCUMENTS = 6, TOKENS = 100 };

static const char *fresh_dataset(const char *name, int token_bytes) {
    const char *directory = test_path(name);
    Corpus corpus = {directory, token_bytes == 4 ? 100000 : 1000, token_bytes, lengths, DOCUMENTS,
                     32};
    make_dataset(&corpus, &corpus);
    return directory;
}

static char *in(const char *directory, const char *name) {
    Error error;
    return path_join(directory, name, &error);
}

static void overwrite(const char *directory, const char *name, long offset, const void *data,
                      size_t size) {
    char *path = in(directory, name);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, offset, SEEK_SET);
    fwrite(data, 1, size, file);
    fclose(file);
    free(path);
}

/* Replaces the first `from` in dataset.json. */
static void edit_json(const char *directory, const char *from, const char *to) {
    Error error;
    Bytes bytes = {0}, edited = {0};
    char *path = in(directory, "dataset.json");
    assert_done(file_read(path, 1 << 20, &bytes, &error), error);
    char *found = strstr((char *)bytes.data, from);
    assert_non_null(found);
    assert_true(bytes_append(&edited, bytes.data, (size_t)(found - (char *)bytes.data), &error));
    assert_true(bytes_append(&edited, to, strlen(to), &error));
    assert_true(bytes_append(&edited, found + strlen(from), strlen(found + strlen(from)), &error));
    assert_done(file_write(path, edited.data, edited.size, &error), error);
    bytes_free(&bytes);
    bytes_free(&edited);
    free(path);
}

static void refuses(const char *directory, const char *text) {
    Error error;
    Dataset *dataset = dataset_open(directory, &error);
    assert_fails_with(dataset, error, text);
}

static void reads_across_shards(int token_bytes, const char *name) {
    Error error;
    uint32_t out[TOKENS];
    Dataset *dataset = dataset_open(fresh_dataset(name, token_bytes), &error);
    assert_done(dataset, error);
    assert_int_equal(dataset_tokens(dataset, SPLIT_TRAIN), TOKENS);
    assert_int_equal(dataset_documents(dataset, SPLIT_VALIDATION), DOCUMENTS);
    assert_int_equal(dataset_bytes(dataset, SPLIT_TRAIN), TOKENS - DOCUMENTS);
    assert_int_equal(dataset_vocab_size(dataset), token_bytes == 4 ? 100000 : 1000);
    assert_int_equal(strlen(dataset_tokenizer_hash(dataset)), 64);
    assert_int_equal(strlen(dataset_fingerprint(dataset)), 64);
    assert_int_equal(dataset_document_starts(dataset, SPLIT_TRAIN)[4], 45);
    for (int64_t start = 0; start < TOKENS; start += 7) {
        assert_done(dataset_read(dataset, SPLIT_TRAIN, start, TOKENS - start, out, &error), error);
        for (int64_t i = start; i < TOKENS; i++) {
            bool begins = i == 0 || i == 3 || i == 43 || i == 44 || i == 45 || i == 70;
            assert_int_equal(out[i - start], begins ? 0 : 1 + i);
        }
    }
    assert_fails_with(dataset_read(dataset, SPLIT_TRAIN, 50, 51, out, &error), error, "has 100");
    assert_fails_with(dataset_read(dataset, SPLIT_TRAIN, -1, 2, out, &error), error, "tokens -1");
    assert_done(dataset_verify(dataset, &error), error);
    dataset_free(dataset);
}

static void test_reads_16_bit(void **state) {
    (void)state;
    reads_across_shards(2, "narrow");
}

static void test_reads_32_bit(void **state) {
    (void)state;
    reads_across_shards(4, "wide");
}

static void test_fingerprint_follows_data(void **state) {
    (void)state;
    Error error;
    Dataset *one = dataset_open(fresh_dataset("one", 2), &error);
    Dataset *same = dataset_open(fresh_dataset("same", 2), &error);
    Dataset *other = dataset_open(fresh_dataset("other", 4), &error);
    assert_string_equal(dataset_fingerprint(one), dataset_fingerprint(same));
    assert_string_not_equal(dataset_fingerprint(one), dataset_fingerprint(other));
    dataset_free(one), dataset_free(same), dataset_free(other);
}

static void test_damaged_shards(void **state) {
    (void)state;
    const char *directory = fresh_dataset("damaged", 2);
    char *path = in(directory, "train_000001.bin");
    assert_int_equal(truncate(path, 1024 + 30), 0);
    refuses(directory, "train_000001.bin is truncated");
    assert_int_equal(truncate(path, 1000), 0);
    refuses(directory, "1000 bytes, less than the 1024");
    fresh_dataset("damaged", 2);
    assert_int_equal(truncate(path, 1024 + 32 * 2 + 2), 0);
    refuses(directory, "train_000001.bin is too long");
    fresh_dataset("damaged", 2);
    int32_t wrong = 77;
    overwrite(directory, "val_000000.bin", 0, &wrong, 4);
    refuses(directory, "val_000000.bin is not a token shard: its magic number is 77");
    fresh_dataset("damaged", 2);
    overwrite(directory, "val_000000.bin", 4, &wrong, 4);
    refuses(directory, "version 77");
    fresh_dataset("damaged", 2);
    wrong = -5;
    overwrite(directory, "val_000000.bin", 8, &wrong, 4);
    refuses(directory, "counts -5 tokens");
    fresh_dataset("damaged", 2);
    unlink(path);
    refuses(directory, "train_000001.bin: No such file");
    assert_int_equal(mkdir(path, 0700), 0);
    refuses(directory, "train_000001.bin is not a regular file");
    free(path);
}

static void test_token_beyond_vocabulary(void **state) {
    (void)state;
    Error error;
    uint32_t out[TOKENS];
    const char *directory = fresh_dataset("beyond", 2);
    uint16_t token = 1000;
    Dataset *dataset = dataset_open(directory, &error);
    assert_done(dataset, error);
    overwrite(directory, "train_000001.bin", 1024 + 2 * 5, &token, 2); /* unseen by opening */
    assert_done(dataset_read(dataset, SPLIT_TRAIN, 0, 37, out, &error), error);
    assert_fails_with(
        dataset_read(dataset, SPLIT_TRAIN, 0, 38, out, &error), error,
        "train_000001.bin: token 1000 at position 5 is not below the vocabulary of 1000");
    assert_fails_with(dataset_verify(dataset, &error), error, "train_000001.bin has changed");
    assert_fails_with(dataset_open(directory, &error), error, "token 1000 at position 5");
    char *path = in(directory, "train_000002.bin");
    assert_int_equal(truncate(path, 1030), 0); /* while it is open */
    assert_fails_with(dataset_read(dataset, SPLIT_TRAIN, 70, 20, out, &error), error, "cut short");
    free(path);
    dataset_free(dataset);
}

static void test_damaged_description(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } edits[] = {
        {"{", "[", "dataset.json is not valid JSON"},
        {"hearth dataset", "other", "\"format\" is not \"hearth dataset\""},
        {"\"version\": 1", "\"version\": 9", "version 9; this hearth reads version 1"},
        {"\"vocab_size\": 1000", "\"vocab_size\": 0", "\"vocab_size\" is 0"},
        {"\"vocab_size\": 1000", "\"vocab_size\": \"x\"", "\"vocab_size\" is not a whole number"},
        {"aaaa", "zzzz", "\"tokenizer_hash\" is not a SHA-256"},
        {"\"separator\": 0", "\"separator\": 1000", "\"separator\" is 1000"},
        {"\"train\"", "\"tram\"", "split \"train\": \"tokens\" is missing"},
        {"train_000000.bin", "../x.bin", "not the plain name of a file"},
        {"train_000000.bin", "", "not the plain name of a file"},
        {"\"tokens\": 100", "\"tokens\": 101", "its shards hold 100 tokens and 6 documents"},
        {"\"tokens\": 32", "\"tokens\": 31", "its shards hold 99 tokens"},
        {"\"documents\": 6", "\"documents\": -6", "\"documents\" is -6"},
        {"\"shards\": [", "\"shards\": 5, \"x\": [", "\"shards\" is not a list"},
        {"train_documents.u64", "val_000000.bin", "dataset.json counts 6 documents of 8 bytes"},
        {"train_documents.u64", "gone.bin", "gone.bin: No such file"},
        {"train_000000.bin", "train_000003.bin", "train_000003.bin holds 4 tokens"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const char *directory = fresh_dataset("description", 2);
        edit_json(directory, edits[i].from, edits[i].to);
        refuses(directory, edits[i].message);
    }
}

static void test_damaged_document_starts(void **state) {
    (void)state;
    static const int64_t wrong[][2] = {{0, 1}, {3, 3}, {3, -9}, {5, 100}, {5, INT64_MIN}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *directory = fresh_dataset("starts", 2);
        overwrite(directory, "train_documents.u64", 8 * wrong[i][0], &wrong[i][1], 8);
        refuses(directory, "which cannot be");
    }
    const char *directory = fresh_dataset("starts", 2);
    char *path = in(directory, "train_documents.u64");
    assert_int_equal(truncate(path, 0), 0);
    refuses(directory, "has 0 bytes");
    free(path);
}

static void test_shards_without_description(void **state) {
    (void)state;
    Error error;
    const char *directory = fresh_dataset("bare", 2);
    char *path = in(directory, "dataset.json");
    unlink(path);
    free(path);
    Dataset *dataset = dataset_open(directory, &error);
    assert_done(dataset, error);
    assert_null(dataset_tokenizer_hash(dataset));
    assert_int_equal(dataset_vocab_size(dataset), 101); /* the largest token is 100 */
    assert_int_equal(dataset_tokens(dataset, SPLIT_TRAIN), TOKENS);
    assert_int_equal(dataset_documents(dataset, SPLIT_TRAIN), DOCUMENTS);
    assert_int_equal(dataset_document_starts(dataset, SPLIT_TRAIN)[5], 70);
    assert_int_equal(dataset_bytes(dataset, SPLIT_TRAIN), -1);
    Dataset *described = dataset_open(fresh_dataset("described", 2), &error);
    assert_string_equal(dataset_fingerprint(dataset), dataset_fingerprint(described));
    assert_done(dataset_verify(dataset, &error), error);
    dataset_free(dataset), dataset_free(described);
}

static void test_not_a_dataset(void **state) {
    (void)state;
    Error error;
    refuses(test_path("nowhere"), "is not a directory");
    assert_done(directory_create(test_path("empty"), &error), error);
    refuses(test_path("empty"), "has neither dataset.json nor token shards");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_16_bit),
        cmocka_unit_test(test_reads_32_bit),
        cmocka_unit_test(test_fingerprint_follows_data),
        cmocka_unit_test(test_damaged_shards),
        cmocka_unit_test(test_token_beyond_vocabulary),
        cmocka_unit_test(test_damaged_description),
        cmocka_unit_test(test_damaged_document_starts),
        cmocka_unit_test(test_shards_without_description),
        cmocka_unit_test(test_not_a_dataset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
