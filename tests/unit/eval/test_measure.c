/* Bits per byte from losses that are given: nats of the targets that stand for text, over the bytes that
 * these tokens hold. */
#include <math.h>

#include "eval/measure.h"
#include "make_model.h"

enum { B = 2, T = 4 };

static const float given[B * T] = {1, 2, 4, 8, 16, 32, 64, 128};

static bool run(Executor *executor, SectionKind section, const StepScalars *scalars, Error *error) {
    (void)executor, (void)section, (void)scalars, (void)error;
    return true;
}

static void upload(Executor *executor, int buffer, int64_t offset, const void *data,
                   int64_t bytes) {
    (void)executor, (void)buffer, (void)offset, (void)data, (void)bytes;
}

static bool download(Executor *executor, int buffer, int64_t offset, void *data, int64_t bytes,
                     Error *error) {
    (void)executor, (void)buffer, (void)offset, (void)error;
    memcpy(data, given, (size_t)bytes);
    return true;
}

static const Backend backend = {.run = run, .upload = upload, .download = download};

static Evaluation measure(const Tokenizer *tokenizer, const int32_t *targets, int64_t rows) {
    Error error;
    const Program program = {.B = B, .T = T};
    const Inference inference = {.backend = &backend, .program = &program, .tokenizer = tokenizer};
    const int32_t zeros[B * T] = {0};
    Measure sums;
    Evaluation result;
    assert_done(measure_start(&sums, &inference, &error), error);
    assert_done(measure_batch(&sums, zeros, targets, zeros, rows, &error), error);
    assert_done(measure_result(&sums, "the test", &result, &error), error);
    measure_free(&sums);
    return result;
}

static Tokenizer *open_tokenizer(void) {
    Error error;
    const char *directory = test_path("tokenizer");
    assert_done(directory_create(directory, &error), error);
    save_tokenizer(directory);
    Tokenizer *tokenizer = tokenizer_open(directory, &error);
    assert_done(tokenizer, error);
    return tokenizer;
}

/* Half a character is one byte, the first merge two, the special token and ids beyond the tokenizer's (a
 * padded vocabulary) none; what is not a target is in neither figure. */
static void test_bytes_are_those_of_tokens(void **state) {
    (void)state;
    enum { HALF = 0xC3, MERGE = 256, SPECIAL = VOCAB - 1, BEYOND = VOCAB };
    Tokenizer *tokenizer = open_tokenizer();
    assert_true(tokenizer_is_special(tokenizer, SPECIAL));
    const int32_t targets[B * T] = {HALF, MERGE, SPECIAL, -1, BEYOND, 'a', MERGE, MERGE};
    Evaluation first = measure(tokenizer, targets, 1), both = measure(tokenizer, targets, 2);
    assert_int_equal(first.tokens, 3);
    assert_int_equal(first.bytes, 3);
    assert_true(fabs(first.loss - 7. / 3) < 1e-12);
    assert_true(fabs(first.bpb - 3 / (3 * log(2))) < 1e-12);
    assert_int_equal(both.tokens, 7);
    assert_int_equal(both.bytes, 3 + 1 + 2 + 2);
    assert_true(fabs(both.loss - 247. / 7) < 1e-12);
    assert_true(fabs(both.bpb - (3 + 32 + 64 + 128) / (8 * log(2))) < 1e-12);
    tokenizer_free(tokenizer);
}

static void test_without_a_tokenizer(void **state) {
    (void)state;
    Evaluation result = measure(NULL, (const int32_t[B * T]){1, 1, 1, 1, 1, 1, 1, 1}, 1);
    assert_int_equal(result.tokens, 4);
    assert_int_equal(result.bytes, 0);
    assert_true(isnan(result.bpb));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_those_of_tokens),
        cmocka_unit_test(test_without_a_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
