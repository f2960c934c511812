/* Batches: what is in them, in which order, and that the position alone decides both. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "data/loader.h"
#include "data/order.h"
#include "make_dataset.h"

enum { VOCAB = 60000, DOCUMENTS = 3000 };
static Dataset *dataset, *little;
static int64_t *lengths;

static int set_up(void **state) {
    (void)state;
    static const int64_t few[] = {4, 1, 9, 6};
    Error error;
    lengths = make_lengths(DOCUMENTS, 90, 1);
    Corpus corpus = {test_path("corpus"), VOCAB, 2, lengths, DOCUMENTS, 10007};
    Corpus small = {test_path("little"), 100, 2, few, 4, 7};
    make_dataset(&corpus, &small);
    make_dataset(&small, &small);
    dataset = dataset_open(corpus.directory, &error);
    assert_done(dataset, error);
    little = dataset_open(small.directory, &error);
    assert_done(little, error);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dataset_free(dataset);
    dataset_free(little);
    free(lengths);
    return 0;
}

static Loader *open_loader(const Dataset *from, LoaderSettings settings, int64_t sample) {
    Error error;
    if (!settings.ranks) settings.ranks = 1;
    Loader *loader = loader_open(from, &settings, sample, 3, &error);
    assert_done(loader, error);
    return loader;
}

static Batch next(Loader *loader) {
    Error error;
    Batch batch;
    double waited = 0;
    assert_done(loader_next(loader, &batch, &waited, &error), error);
    return batch;
}

static void expect_row(const Batch *batch, int64_t row, int64_t T, const int32_t *tokens,
                       const int32_t *targets, const int32_t *starts) {
    assert_memory_equal(batch->tokens + row * T, tokens, (size_t)T * 4);
    assert_memory_equal(batch->targets + row * T, targets, (size_t)T * 4);
    assert_memory_equal(batch->document_start + row * T, starts, (size_t)T * 4);
}

/* The little split: 0 2 3 4 | 0 | 0 7 8 9 10 11 12 13 14 | 0 16 17 18 19 20 */
static void test_stream_rows(void **state) {
    (void)state;
    Loader *loader =
        open_loader(little, (LoaderSettings){.sequence_length = 8, .micro_batch = 2}, 0);
    assert_int_equal(loader_samples_per_epoch(loader), 3);
    Batch batch = next(loader);
    assert_int_equal(batch.target_count, 16);
    expect_row(&batch, 0, 8, (int32_t[]){0, 2, 3, 4, 0, 0, 7, 8},
               (int32_t[]){2, 3, 4, 0, 0, 7, 8, 9}, (int32_t[]){0, 0, 0, 0, 4, 5, 5, 5});
    expect_row(&batch, 1, 8, (int32_t[]){9, 10, 11, 12, 13, 14, 0, 16},
               (int32_t[]){10, 11, 12, 13, 14, 0, 16, 17}, (int32_t[]){0, 0, 0, 0, 0, 0, 6, 6});
    batch = next(loader); /* the tail, then padding up to the end of the pass */
    assert_int_equal(batch.target_count, 3);
    expect_row(&batch, 0, 8, (int32_t[]){17, 18, 19, 0, 0, 0, 0, 0},
               (int32_t[]){18, 19, 20, -1, -1, -1, -1, -1}, (int32_t[]){0, 0, 0, 3, 3, 3, 3, 3});
    assert_int_equal(batch.targets[8], -1);
    assert_int_equal(loader_position(loader), 3);
    batch = next(loader); /* another pass */
    assert_int_equal(batch.epoch, 1);
    assert_int_equal(batch.sample, 3);
    assert_int_equal(batch.tokens[1], 2);
    loader_free(loader);
}

static void test_document_rows(void **state) {
    (void)state;
    Loader *loader = open_loader(
        little,
        (LoaderSettings){.packing = PACKING_DOCUMENTS, .sequence_length = 8, .micro_batch = 4}, 0);
    assert_int_equal(loader_samples_per_epoch(loader), 3);
    Batch batch = next(loader);
    expect_row(&batch, 0, 8, (int32_t[]){0, 2, 3, 4, 0, 0, 0, 0},
               (int32_t[]){2, 3, 4, 0, 0, -1, -1, -1}, (int32_t[]){0, 0, 0, 0, 4, 5, 5, 5});
    expect_row(&batch, 1, 8, (int32_t[]){0, 7, 8, 9, 10, 11, 12, 13},
               (int32_t[]){7, 8, 9, 10, 11, 12, 13, 14}, (int32_t[8]){0});
    expect_row(&batch, 2, 8, (int32_t[]){14, 0, 16, 17, 18, 19, 0, 0},
               (int32_t[]){0, 16, 17, 18, 19, 20, -1, -1}, (int32_t[]){0, 1, 1, 1, 1, 1, 6, 6});
    assert_int_equal(batch.target_count, 5 + 8 + 6);
    loader_free(loader);
}

static void test_order_is_a_permutation(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 1000, 4097};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int64_t count = counts[c], same = 0, in_place = 0;
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            char *seen = calloc((size_t)count, 1);
            for (int64_t i = 0; i < count; i++) {
                int64_t row = order_row(7, epoch, count, i);
                assert_in_range(row, 0, count - 1);
                assert_int_equal(seen[row]++, 0);
                if (epoch) same += row == order_row(7, epoch - 1, count, i);
                in_place += row == i;
            }
            free(seen);
        }
        if (count >= 1000) assert_in_range(same, 0, 20);
        if (count >= 1000) assert_in_range(in_place, 0, 20);
    }
    assert_true(order_row(7, 0, INT64_C(1) << 61, 5) != order_row(8, 0, INT64_C(1) << 61, 5));
}

/* In stream and documents packing every token of the split but the last is predicted from once an
 * epoch. Tokens of this corpus say where they stand, so count them. */
static void test_each_token_once_an_epoch(void **state) {
    (void)state;
    for (Packing packing = PACKING_STREAM; packing <= PACKING_DOCUMENTS; packing++) {
        LoaderSettings settings = {.packing = packing,
                                   .sequence_length = 33,
                                   .micro_batch = 5,
                                   .shuffle = true,
                                   .seed = 3};
        Loader *loader = open_loader(dataset, settings, 0);
        int64_t rows = loader_samples_per_epoch(loader),
                tokens = dataset_tokens(dataset, SPLIT_TRAIN);
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            int64_t targets = 0;
            char *seen = calloc(VOCAB, 1);
            settings.micro_batch = 1;
            Loader *one = open_loader(dataset, settings, epoch * rows);
            for (int64_t row = 0; row < rows; row++) {
                Batch batch = next(one);
                assert_int_equal(batch.epoch, epoch);
                targets += batch.target_count;
                for (int64_t i = 0; i < 33; i++)
                    if (batch.tokens[i]) seen[batch.tokens[i]]++;
            }
            assert_int_equal(targets, tokens - 1);
            int64_t distinct = 0;
            for (int64_t i = 1; i < VOCAB; i++) distinct += seen[i] > 0;
            assert_true(distinct >= (tokens < VOCAB ? tokens : VOCAB) - DOCUMENTS - 2);
            loader_free(one);
            free(seen);
        }
        loader_free(loader);
    }
}

/* All of T, targets and document starts of rows sample..sample+count-1, read with one loader. */
static int32_t *read_rows(LoaderSettings settings, int64_t sample, int64_t count) {
    int64_t T = settings.sequence_length, B = settings.micro_batch;
    int32_t *out = calloc((size_t)(count + B) * (size_t)T * 3, sizeof *out);
    Loader *loader = open_loader(dataset, settings, sample);
    for (int64_t done = 0; done < count; done += B) {
        assert_int_equal(loader_position(loader), sample + done);
        Batch batch = next(loader);
        assert_int_equal(batch.sample, sample + done);
        for (int64_t row = 0; row < B; row++) {
            int32_t *to = out + (done + row) * T * 3;
            memcpy(to, batch.tokens + row * T, (size_t)T * 4);
            memcpy(to + T, batch.targets + row * T, (size_t)T * 4);
            memcpy(to + 2 * T, batch.document_start + row * T, (size_t)T * 4);
        }
    }
    loader_free(loader);
    return out;
}

static void test_position_alone_decides(void **state) {
    (void)state;
    for (Packing packing = PACKING_STREAM; packing <= PACKING_BESTFIT; packing++) {
        LoaderSettings settings = {.packing = packing,
                                   .sequence_length = 129,
                                   .micro_batch = 4,
                                   .shuffle = true,
                                   .seed = 11};
        Loader *loader = open_loader(dataset, settings, 0);
        int64_t rows = 2 * loader_samples_per_epoch(loader) + 10; /* across two ends of an epoch */
        loader_free(loader);
        int32_t *whole = read_rows(settings, 0, rows);
        for (int64_t start = 1; start < rows; start += rows / 7 + 1) {
            settings.micro_batch = 1 + start % 6;
            int32_t *rest = read_rows(settings, start, rows - start);
            assert_memory_equal(rest, whole + start * 129 * 3,
                                (size_t)(rows - start) * 129 * 3 * 4);
            free(rest);
        }
        settings.micro_batch = 4;
        settings.seed = 12;
        int32_t *other = read_rows(settings, 0, rows);
        assert_memory_not_equal(other, whole, (size_t)rows * 129 * 3 * 4);
        free(other);
        free(whole);
    }
}

static void expect_ranks_to_share(Packing packing, int64_t ranks) {
    enum { T = 50, B = 3, BATCHES = 40 };
    LoaderSettings settings = {.packing = packing,
                               .sequence_length = T,
                               .micro_batch = B,
                               .shuffle = true,
                               .seed = 5,
                               .ranks = 1};
    int32_t *whole = read_rows(settings, 0, B * ranks * BATCHES);
    settings.ranks = ranks;
    for (settings.rank = 0; settings.rank < ranks; settings.rank++) {
        Loader *loader = open_loader(dataset, settings, 0);
        for (int64_t i = 0; i < BATCHES; i++) {
            Batch batch = next(loader);
            assert_int_equal(batch.sample, i * B * ranks + settings.rank);
            for (int64_t row = 0; row < B; row++)
                assert_memory_equal(batch.tokens + row * T,
                                    whole + (batch.sample + row * ranks) * T * 3, T * 4);
        }
        assert_int_equal(loader_position(loader), B * ranks * BATCHES);
        loader_free(loader);
    }
    free(whole);
}

static void test_ranks_share_the_rows(void **state) {
    (void)state;
    for (Packing packing = PACKING_STREAM; packing <= PACKING_BESTFIT; packing++) {
        expect_ranks_to_share(packing, 4);
        expect_ranks_to_share(packing, 7);
    }
}

static void test_wrong_settings(void **state) {
    (void)state;
    Error error;
    LoaderSettings settings = {
        .sequence_length = 20, .micro_batch = 2, .shuffle = true, .ranks = 1};
    assert_fails_with(
        loader_open(little, &settings, 0, 2, &error), error,
        "has 20 tokens, fewer than one sequence of 20 and its last target; use --seq-len "
        "19 or less, or more text");
    settings.shuffle = false;
    Loader *loader = open_loader(little, settings, 0);
    assert_int_equal(next(loader).target_count, 19);
    loader_free(loader);
    settings.micro_batch = 0;
    assert_fails_with(loader_open(little, &settings, 0, 2, &error), error, "at least 1");
    settings.micro_batch = INT32_MAX - 1, settings.sequence_length = INT32_MAX - 1;
    assert_fails_with(loader_open(little, &settings, 0, INT32_MAX, &error), error, "out of memory");
    settings.micro_batch = 1, settings.sequence_length = 1, settings.rank = 1;
    assert_fails_with(loader_open(little, &settings, 0, 2, &error), error, "rank 1 of 1");
    settings.rank = 0;
    assert_fails_with(loader_open(little, &settings, -1, 2, &error), error, "sample -1");
    assert_fails_with(loader_open(little, &settings, 0, 0, &error), error, "0 batches");
}

/* An error in the data reaches the consumer after the batches before it, and stays. */
static void test_error_in_background(void **state) {
    (void)state;
    static const int64_t one[] = {60};
    Error error;
    Corpus corpus = {test_path("broken"), 100, 2, one, 1, 60};
    make_dataset(&corpus, &corpus);
    Dataset *broken = dataset_open(corpus.directory, &error);
    Manifest manifest;
    assert_done(manifest_read(&manifest, corpus.directory, &error), error);
    char *path = path_join(corpus.directory, manifest.splits[0].shards[0].name, &error);
    FILE *file = fopen(path, "r+b");
    fseek(file, 1024 + 2 * 45, SEEK_SET);
    fputc(200, file);
    fclose(file);
    Batch batch;
    Loader *loader =
        open_loader(broken, (LoaderSettings){.sequence_length = 10, .micro_batch = 2}, 0);
    batch = next(loader);
    batch = next(loader);
    assert_int_equal(batch.tokens[0], 21);
    assert_fails_with(loader_next(loader, &batch, NULL, &error), error, "token 200 at position 45");
    assert_fails_with(loader_next(loader, &batch, NULL, &error), error, "token 200 at position 45");
    loader_free(loader);
    dataset_free(broken);
    manifest_free(&manifest);
    free(path);
}

static void test_memory_is_counted(void **state) {
    (void)state;
    Loader *loader = open_loader(
        dataset,
        (LoaderSettings){.packing = PACKING_BESTFIT, .sequence_length = 128, .micro_batch = 16}, 0);
    size_t batches = 3 * 16 * 128 * 3 * 4;
    assert_in_range(loader_memory(loader), batches + DOCUMENTS * 4,
                    batches + DOCUMENTS * 4 + 60000);
    loader_free(loader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_rows),
        cmocka_unit_test(test_document_rows),
        cmocka_unit_test(test_order_is_a_permutation),
        cmocka_unit_test(test_each_token_once_an_epoch),
        cmocka_unit_test(test_position_alone_decides),
        cmocka_unit_test(test_ranks_share_the_rows),
        cmocka_unit_test(test_wrong_settings),
        cmocka_unit_test(test_error_in_background),
        cmocka_unit_test(test_memory_is_counted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
