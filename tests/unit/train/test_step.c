/* Properties of a training step: accumulation, recompute, threads, chunks, optimizer states, bad
 * gradients. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/random.h"
#include "support.h"
#include "training.h"

enum { ROWS = 32, T = 24, VOCAB = 61 };

static const AdamwSettings adamw = {
    .beta1 = 0.9f, .beta2 = 0.95f, .epsilon = 1e-8f, .weight_decay = 0.1f, .clip_norm = 1};

static int32_t tokens[ROWS * T], targets[ROWS * T], document_start[ROWS * T];

/* Rows with a pattern to learn; rows from `short_rows` on count only a few of their targets. */
static int64_t make_data(int short_rows) {
    int64_t counted = 0;
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t t = 0; t < T; t++) {
            int64_t i = row * T + t;
            tokens[i] = (int32_t)((row * 7 + t * 3 + (t == 11)) % VOCAB);
            targets[i] = (int32_t)((row * 7 + t * 3 + 3) % VOCAB);
            if (row >= short_rows && t % (row + 2) != 0) targets[i] = -1;
            document_start[i] = t < 9 ? 0 : 9;
            counted += targets[i] >= 0;
        }
    return counted;
}

static void initialise(Training *training) {
    for (int p = 0; p < training->program.parameter_count; p++) {
        int64_t count = training_parameter_elements(training, p);
        float *values = test_calloc((size_t)count, sizeof *values);
        model_initialise(&training->program, p, 5, 0, count, values);
        training_set(training, p, values);
        test_free(values);
    }
}

static void open_small(Training *training, Dtype storage, int64_t micro_batch, int64_t chunk,
                       RecomputeLevel recompute, StateFormat state) {
    TrainingSettings settings = {.storage = storage,
                                 .micro_batch = micro_batch,
                                 .batch_tokens = ROWS * T,
                                 .logit_chunk = chunk,
                                 .document_mask = true,
                                 .recompute = recompute,
                                 .optimizer = optimizer_adamw(&adamw)};
    settings.optimizer.state = state;
    const ModelConfig config = small_llama(VOCAB, T);
    training_open(training, &config, &settings);
    initialise(training);
}

/* All rows in micro-batches; returns the mean loss. */
static double run_batch(Training *training, int64_t counted) {
    double sum = 0;
    int64_t stride = training->program.B * T;
    for (int64_t first = 0; first < ROWS * T; first += stride)
        sum +=
            training_micro_batch(training, tokens + first, targets + first, document_start + first);
    return sum / (double)counted;
}

/* Largest difference of any gradient, relative to the largest gradient of its parameter. */
static double gradient_difference(Training *a, Training *b) {
    double worst = 0;
    for (int p = 0; p < a->program.parameter_count; p++) {
        const float *left = training_gradient(a, p), *right = training_gradient(b, p);
        double largest = 0, difference = 0;
        for (int64_t i = 0; i < training_parameter_elements(a, p); i++) {
            largest = fmax(largest, fabs((double)left[i]));
            difference = fmax(difference, fabs((double)left[i] - (double)right[i]));
        }
        assert_true(largest > 0);
        worst = fmax(worst, difference / largest);
    }
    return worst;
}

static void test_accumulation_equals_one_large_batch(void **state) {
    (void)state;
    for (int short_rows = ROWS; short_rows >= 5;
         short_rows -= 27) { /* equal, then unequal target counts */
        Training whole_batch, parts;
        int64_t counted = make_data(short_rows);
        open_small(&whole_batch, DTYPE_F32, 32, 256, RECOMPUTE_NONE, STATE_FP32);
        open_small(&parts, DTYPE_F32, 8, 256, RECOMPUTE_NONE, STATE_FP32);
        double once = run_batch(&whole_batch, counted), four = run_batch(&parts, counted);
        assert_true(fabs(once - four) < 1e-6 * once);
        assert_true(gradient_difference(&whole_batch, &parts) < 2e-6);
        float norm = training_update(&whole_batch, 1, 1e-3f, counted);
        float same = training_update(&parts, 1, 1e-3f, counted);
        assert_true(fabsf(norm - same) < 2e-6f * norm);
        training_close(&whole_batch);
        training_close(&parts);
    }
}

/* Bits of the gradients, or a hash of them that any change alters. */
static void assert_same_bits(Training *a, Training *b) {
    for (int p = 0; p < a->program.parameter_count; p++)
        assert_memory_equal(training_gradient(a, p), training_gradient(b, p),
                            (size_t)training_parameter_elements(a, p) * sizeof(float));
}

static void test_recompute_changes_no_bit(void **state) {
    (void)state;
    int64_t counted = make_data(20);
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        Training kept;
        open_small(&kept, (Dtype)storage, 8, 100, RECOMPUTE_NONE, STATE_FP32);
        double loss = run_batch(&kept, counted);
        int64_t bytes = kept.program.arena_bytes;
        for (int level = RECOMPUTE_CHEAP; level <= RECOMPUTE_LAYER; level++) {
            Training again;
            open_small(&again, (Dtype)storage, 8, 100, (RecomputeLevel)level, STATE_FP32);
            assert_true(run_batch(&again, counted) == loss);
            assert_same_bits(&kept, &again);
            assert_true(again.program.arena_bytes < bytes); /* it does save memory */
            bytes = again.program.arena_bytes;
            training_close(&again);
        }
        training_close(&kept);
    }
}

static void test_loss_sum_goes_on_until_it_is_zeroed(void **state) {
    (void)state;
    Error error;
    Training training;
    make_data(5);
    open_small(&training, DTYPE_F32, ROWS, 100, RECOMPUTE_NONE, STATE_FP32);
    double returned = training_micro_batch(&training, tokens, targets, document_start);
    float losses[ROWS * T];
    const Backend *backend = training.backend;
    assert_done(backend->download(training.executor, training.program.losses, 0, losses,
                                  sizeof losses, &error),
                error);
    double sum = 0;
    for (int i = 0; i < ROWS * T; i++) sum += (double)losses[i];
    assert_true(sum == returned);
    assert_done(backend->run(training.executor, SECTION_MICRO_BATCH, &(StepScalars){0}, &error),
                error);
    assert_done(backend->download(training.executor, training.program.loss_sum, 0, &returned,
                                  sizeof returned, &error),
                error);
    for (int i = 0; i < ROWS * T; i++) sum += (double)losses[i];
    assert_true(sum == returned);
    training_close(&training);
}

/* Two steps with `threads` threads, then the gradients of a third. */
static void train_with_threads(Training *training, Dtype storage, int threads) {
    const int64_t counted = make_data(ROWS);
    omp_set_num_threads(threads);
    open_small(training, storage, 8, 50, RECOMPUTE_NONE, STATE_FP32);
    for (int step = 1; step <= 2; step++) {
        run_batch(training, counted);
        training_update(training, step, 1e-2f, counted);
    }
    run_batch(training, counted);
}

static void test_threads_change_no_bit(void **state) {
    (void)state;
    const int threads = omp_get_max_threads();
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        Training one, several;
        train_with_threads(&one, (Dtype)storage, 1);
        train_with_threads(&several, (Dtype)storage, 3);
        assert_same_bits(&one, &several);
        training_close(&one);
        training_close(&several);
    }
    omp_set_num_threads(threads);
}

static void test_logit_chunks(void **state) {
    (void)state;
    int64_t counted = make_data(20);
    Training one, many;
    open_small(&one, DTYPE_F32, 8, 8 * T, RECOMPUTE_NONE, STATE_FP32);
    open_small(&many, DTYPE_F32, 8, 37, RECOMPUTE_NONE, STATE_FP32); /* the last chunk is short */
    double loss = run_batch(&one, counted);
    assert_true(fabs(run_batch(&many, counted) - loss) < 1e-6 * loss);
    assert_true(gradient_difference(&one, &many) < 2e-6);
    training_close(&one);
    training_close(&many);
}

static double train_steps(Dtype storage, StateFormat format, int64_t steps) {
    Training training;
    int64_t counted = make_data(ROWS);
    double loss = 0;
    open_small(&training, storage, 16, 256, RECOMPUTE_NONE, format);
    for (int64_t step = 1; step <= steps; step++) {
        loss = run_batch(&training, counted);
        training_update(&training, step, 5e-3f, counted);
    }
    training_close(&training);
    return loss;
}

static void test_optimizer_states_train_alike(void **state) {
    (void)state;
    int64_t steps = training_steps(60);
    double exact = train_steps(DTYPE_F32, STATE_FP32, steps);
    assert_true(exact < (steps == 60 ? 1.5 : 4.0)); /* from log(61) = 4.11 */
    assert_true(fabs(train_steps(DTYPE_F32, STATE_BF16, steps) / exact - 1) < 0.15);
    assert_true(fabs(train_steps(DTYPE_F32, STATE_8BIT, steps) / exact - 1) < 0.15);
    assert_true(fabs(train_steps(DTYPE_BF16, STATE_FP32, steps) / exact - 1) < 0.15);
}

static void test_gradient_that_is_not_finite_changes_nothing(void **state) {
    (void)state;
    int64_t counted = make_data(ROWS);
    Training training;
    open_small(&training, DTYPE_F32, 32, 256, RECOMPUTE_NONE, STATE_FP32);
    run_batch(&training, counted);
    float before = training_master(&training, 3)[5];
    training_set_gradient(&training, 1, 2, NAN);
    assert_true(isnan(training_update(&training, 1, 1e-2f, counted)));
    assert_true(training_master(&training, 3)[5] == before);
    run_batch(&training, counted); /* the gradients were zeroed: nothing of the NaN is left */
    assert_true(isfinite(training_update(&training, 1, 1e-2f, counted)));
    assert_true(training_master(&training, 3)[5] != before);
    training_close(&training);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accumulation_equals_one_large_batch),
        cmocka_unit_test(test_recompute_changes_no_bit),
        cmocka_unit_test(test_loss_sum_goes_on_until_it_is_zeroed),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_logit_chunks),
        cmocka_unit_test(test_optimizer_states_train_alike),
        cmocka_unit_test(test_gradient_that_is_not_finite_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
