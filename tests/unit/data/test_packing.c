/* Best-fit packing: nanochat's rows token for token, and what it crops. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/loader.h"
#include "data/packing.h"
#include "make_dataset.h"

enum { VOCAB = 1 << 20 }; /* above the number of tokens: each says where it stands */

typedef struct Golden {
    json_t *json;
    const json_t *rows;
    int64_t T;
    Dataset *dataset; /* documents of the golden lengths */
} Golden;

static Golden golden_open(const char *name) {
    Error error;
    Golden golden = {0};
    char *path = path_join(HEARTH_SOURCE "/tests/golden/packing", name, &error);
    golden.json = json_read_file(path, 1 << 20, &error);
    assert_done(golden.json, error);
    golden.rows = json_object_get(golden.json, "rows");
    golden.T = json_integer_value(json_object_get(golden.json, "sequence_length"));
    const json_t *list = json_object_get(golden.json, "lengths");
    size_t documents = json_array_size(list);
    int64_t *lengths = calloc(documents, sizeof *lengths);
    for (size_t d = 0; d < documents; d++) lengths[d] = json_integer_value(json_array_get(list, d));
    Corpus corpus = {test_path(name), VOCAB, 4, lengths, (int64_t)documents, 100003};
    make_dataset(&corpus, &corpus);
    golden.dataset = dataset_open(corpus.directory, &error);
    assert_done(golden.dataset, error);
    free(lengths);
    free(path);
    return golden;
}

static void golden_close(Golden *golden) {
    json_decref(golden->json);
    dataset_free(golden->dataset);
}

/* The T + 1 tokens of a golden row, read from the split, and where in the row their documents begin. */
static void expected_row(const Golden *golden, size_t row, uint32_t *tokens, int32_t *begins) {
    Error error;
    const int64_t *starts = dataset_document_starts(golden->dataset, SPLIT_TRAIN);
    const json_t *segments = json_array_get(golden->rows, row);
    int64_t at = 0;
    for (size_t i = 0; i < json_array_size(segments); i++) {
        const json_t *segment = json_array_get(segments, i);
        int64_t document = json_integer_value(json_array_get(segment, 0)),
                count = json_integer_value(json_array_get(segment, 1));
        assert_true(at + count <= golden->T + 1);
        assert_done(dataset_read(golden->dataset, SPLIT_TRAIN, starts[document], count, tokens + at,
                                 &error),
                    error);
        assert_int_equal(tokens[at], 0);
        for (int64_t k = 0; k < count; k++) begins[at + k] = (int32_t)at;
        at += count;
    }
    assert_int_equal(at, golden->T + 1);
}

static void expect_golden_rows(const char *name) {
    Error error;
    Golden golden = golden_open(name);
    size_t T = (size_t)golden.T;
    uint32_t *tokens = calloc(T + 1, sizeof *tokens);
    int32_t *begins = calloc(T + 1, sizeof *begins);
    const LoaderSettings settings = {
        .packing = PACKING_BESTFIT, .sequence_length = golden.T, .micro_batch = 1, .ranks = 1};
    Loader *loader = loader_open(golden.dataset, &settings, 0, 2, &error);
    assert_done(loader, error);
    assert_true(json_array_size(golden.rows) > 200);
    for (size_t row = 0; row < json_array_size(golden.rows); row++) {
        Batch batch;
        assert_done(loader_next(loader, &batch, NULL, &error), error);
        expected_row(&golden, row, tokens, begins);
        assert_memory_equal(batch.tokens, tokens, 4 * T);
        assert_memory_equal(batch.targets, tokens + 1, 4 * T);
        assert_memory_equal(batch.document_start, begins, 4 * T);
    }
    loader_free(loader);
    free(tokens);
    free(begins);
    golden_close(&golden);
}

static void test_rows_are_nanochats(void **state) {
    (void)state;
    expect_golden_rows("bestfit_short.json");
    expect_golden_rows("bestfit_long.json");
}

/* To the end of the epoch: each document once, from its beginning; every row full except the last. */
static void test_each_document_once(void **state) {
    (void)state;
    Error error;
    Golden golden = golden_open("bestfit_long.json");
    const int64_t *starts = dataset_document_starts(golden.dataset, SPLIT_TRAIN);
    int64_t documents = dataset_documents(golden.dataset, SPLIT_TRAIN),
            tokens = dataset_tokens(golden.dataset, SPLIT_TRAIN), seen = 0, kept = 0;
    char *begins = calloc((size_t)tokens, 1);
    for (int64_t d = 0; d < documents; d++) begins[starts[d]] = 1;
    Segment *segments = calloc((size_t)golden.T + 1, sizeof *segments);
    Packer *packer = packer_open(golden.dataset, SPLIT_TRAIN, PACKING_BESTFIT, golden.T, &error);
    assert_done(packer, error);
    for (int64_t row = 0; row < packer_rows(packer); row++) {
        int64_t filled = 0, count = packer_row(packer, row, segments);
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(begins[segments[i].start], 1);
            begins[segments[i].start] = 0;
            filled += segments[i].count;
        }
        if (row + 1 < packer_rows(packer)) assert_int_equal(filled, golden.T + 1);
        seen += count, kept += filled;
    }
    assert_int_equal(seen, documents);
    assert_int_equal(packer_cropped(packer), tokens - kept);
    assert_true(tokens - kept > tokens / 10);
    packer_free(packer);
    free(segments);
    free(begins);
    golden_close(&golden);
}

static void test_cropped_share(void **state) {
    (void)state;
    Error error;
    static const int64_t lengths[] = {10, 4, 3, 3};
    Corpus corpus = {test_path("cropped"), VOCAB, 4, lengths, 4, 20};
    make_dataset(&corpus, &corpus);
    Dataset *dataset = dataset_open(corpus.directory, &error);
    assert_done(dataset, error);
    for (Packing packing = PACKING_STREAM; packing <= PACKING_BESTFIT; packing++) {
        LoaderSettings settings = {
            .packing = packing, .sequence_length = 7, .micro_batch = 1, .ranks = 1};
        Loader *loader = loader_open(dataset, &settings, 0, 1, &error);
        assert_done(loader, error);
        /* bestfit: 4 + 3 + 1 of the other 3, then 8 of the 10 */
        double expected = packing == PACKING_BESTFIT ? 4. / 20 : 0;
        assert_true(loader_cropped_share(loader) == expected);
        loader_free(loader);
    }
    dataset_free(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_nanochats),
        cmocka_unit_test(test_each_document_once),
        cmocka_unit_test(test_cropped_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
