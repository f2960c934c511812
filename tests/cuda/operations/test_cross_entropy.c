#include "trial.h"

#include <math.h>

typedef struct Case {
    int64_t n, V;
    double deviation;
    bool gradient;
    int64_t padding; /* columns behind the vocabulary */
    float cap;
    bool best;
} Case;

typedef struct Buffers {
    int losses, logits, targets, best;
} Buffers;

static Buffers open_case(Trial *trial, Dtype storage, const Case *c) {
    trial_open(trial, storage);
    const int64_t stride = c->V + c->padding;
    Buffers b = {.losses = trial_output(trial, DTYPE_F32, c->n),
                 .logits = trial_random(trial, storage, c->n * stride, c->deviation),
                 .targets = trial_integers(trial, c->n, (int32_t)c->V),
                 .best = c->best ? trial_output(trial, DTYPE_I32, c->n) : -1};
    Operation *operation = trial_operation(trial, OP_CROSS_ENTROPY);
    operation->outputs[0] = whole(b.losses), operation->outputs[1] = whole(b.logits);
    operation->outputs[2] = whole(b.best);
    operation->inputs[0] = whole(b.targets);
    operation->cross_entropy = (CrossEntropyShape){.N = c->n,
                                                   .V = c->V,
                                                   .stride = stride,
                                                   .scale = 0.37f,
                                                   .cap = c->cap,
                                                   .gradient = c->gradient};
    return b;
}

static void check(Dtype storage, const Case *c) {
    Trial trial;
    Buffers b = open_case(&trial, storage, c);
    int32_t *targets = trial_data(&trial, b.targets);
    if (c->n > 1) targets[c->n / 2] = -1;
    targets[c->n - 1] = (int32_t)c->V - 1;
    trial_run(&trial);
    trial_close_to(&trial, b.losses, 2e-6, 1e-5);
    double rounding = storage == DTYPE_BF16 ? 0x1p-7 : 1e-5 + 1e-6 * c->deviation;
    trial_close_to(&trial, b.logits, rounding, 1e-6);
    if (c->best) trial_same(&trial, b.best);
    if (!c->gradient)
        assert_memory_equal(trial.cuda[b.logits], trial.start[b.logits],
                            (size_t)trial.bytes[b.logits]);
    trial_close(&trial);
}

static void test_shapes(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 2, 17, 64, 255, 1000, 4099};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < 7; i++) {
            check(storage, &(Case){1, widths[i], 2, true});
            check(storage, &(Case){9, widths[i], 2, true}); /* rows begin at every alignment */
            check(storage, &(Case){2, widths[i], 2, false});
            check(storage, &(Case){3, widths[i], 1000, true}); /* exponentials out of range */
        }
}

/* Rows begin at every alignment, and threads reach behind the vocabulary. */
static void test_padding(void **state) {
    (void)state;
    static const Case cases[] = {
        {.n = 9, .V = 17, .padding = 3, .deviation = 2, .gradient = true},
        {.n = 9, .V = 63, .padding = 1, .deviation = 2, .gradient = true, .cap = 15},
        {.n = 3, .V = 4099, .padding = 61, .deviation = 2, .gradient = true},
        {.n = 2, .V = 1000, .padding = 24, .deviation = 2, .cap = 15, .best = true},
        {.n = 5, .V = 1, .padding = 600, .deviation = 2, .gradient = true, .best = true},
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(storage, &cases[i]);
}

/* Deviations far below, at and far above the cap. */
static void test_cap(void **state) {
    (void)state;
    static const double deviations[] = {0.01, 2, 15, 1000};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < 4; i++) {
            check(storage, &(Case){4, 255, deviations[i], true, .cap = 15, .best = true});
            check(storage, &(Case){4, 1003, deviations[i], false, .cap = 15, .best = true});
        }
}

static void set_logit(Trial *trial, const Buffers *b, int64_t place, float value) {
    if (trial->program.storage == DTYPE_BF16)
        ((bf16 *)trial_data(trial, b->logits))[place] = bf16_from_float(value);
    else
        ((float *)trial_data(trial, b->logits))[place] = value;
}

/* Ties at these places: the first is the best, in rows without a target too, and though a cap makes others
 * equal to it. */
static void check_best(Dtype storage, const int64_t places[3], float cap) {
    Trial trial;
    const Case c = {.n = 2, .V = 4500, .deviation = 1, .padding = 5, .cap = cap, .best = true};
    Buffers b = open_case(&trial, storage, &c);
    ((int32_t *)trial_data(&trial, b.targets))[1] = -1;
    const int64_t stride = c.V + c.padding;
    for (int row = 0; row < 2; row++) {
        for (int i = 0; i < 3; i++) set_logit(&trial, &b, row * stride + places[i], 3000);
        set_logit(&trial, &b, row * stride + 2, 2900);
        set_logit(&trial, &b, row * stride + c.V, 4000);
    }
    trial_run(&trial);
    trial_same(&trial, b.best);
    assert_int_equal(*(int32_t *)trial.cuda[b.best], places[0]);
    trial_close(&trial);
}

static void test_best(void **state) {
    (void)state;
    static const int64_t places[][3] = {
        {0, 1, 4499}, {9, 10, 11}, {299, 4400, 4401}, {4097, 4098, 4499}, {4499, 4499, 4499}};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < 5; i++) {
            check_best(storage, places[i], 0);
            check_best(storage, places[i], 15);
        }
}

static void test_best_of_nothing(void **state) {
    (void)state;
    static const float values[] = {NAN, -INFINITY};
    for (int i = 0; i < 2; i++) {
        Trial trial;
        const Case c = {.n = 1, .V = 70, .best = true};
        Buffers b = open_case(&trial, DTYPE_F32, &c);
        for (int64_t v = 0; v < c.V; v++) set_logit(&trial, &b, v, values[i]);
        trial_run(&trial);
        trial_same(&trial, b.best);
        assert_int_equal(*(int32_t *)trial.cuda[b.best], 0);
        trial_close(&trial);
    }
}

static float loss_with(Dtype storage, int64_t place, float value) {
    Trial trial;
    const Case c = {.n = 1, .V = 300, .deviation = 1};
    Buffers b = open_case(&trial, storage, &c);
    *(int32_t *)trial_data(&trial, b.targets) = 5;
    set_logit(&trial, &b, place, value);
    trial_run(&trial);
    float loss = *(float *)trial.cuda[b.losses];
    if (isfinite(loss)) trial_close_to(&trial, b.losses, 2e-6, 1e-5);
    trial_close(&trial);
    return loss;
}

/* Impossible tokens weigh nothing, wherever they stand; what is no number is never hidden. */
static void test_not_finite(void **state) {
    (void)state;
    static const int64_t places[] = {0, 6, 31, 299};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        assert_true(isinf(loss_with(storage, 5, -INFINITY)));
        for (int i = 0; i < 4; i++) {
            assert_true(isfinite(loss_with(storage, places[i], -INFINITY)));
            assert_true(isnan(loss_with(storage, places[i], NAN)));
            assert_true(!isfinite(loss_with(storage, places[i], INFINITY)));
        }
    }
}

/* A thread, and a whole warp, that sees only -infinity. */
static void test_most_tokens_impossible(void **state) {
    (void)state;
    Trial trial;
    const Case c = {.n = 1, .V = 600, .deviation = 1, .gradient = true};
    Buffers b = open_case(&trial, DTYPE_BF16, &c);
    *(int32_t *)trial_data(&trial, b.targets) = 2;
    for (int64_t v = 0; v < c.V; v++)
        if (v % 300 >= 5) set_logit(&trial, &b, v, -INFINITY);
    trial_run(&trial);
    trial_close_to(&trial, b.losses, 2e-6, 1e-5);
    trial_close_to(&trial, b.logits, 0x1p-7, 1e-6);
    trial_close(&trial);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_best_of_nothing),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_most_tokens_impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
