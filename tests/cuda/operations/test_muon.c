/* Muon's operations; the momentum has the CPU's bits. */
#include "trial.h"

#include <math.h>

/* Of what is rounded once to the storage type, from sums in another order. */
static double rounding(Dtype storage) {
    return storage == DTYPE_BF16 ? 0x1p-7 : 1e-5;
}

/* Gates, tall and wide ones, square ones; rows longer than a block's threads, more rows than those of the
 * block that finds their factors, more columns than a block sums. */
static const int64_t shapes[][2] = {{1, 1},   {1, 12},  {12, 1},  {6, 12},  {12, 6},   {3, 3},
                                    {33, 70}, {70, 33}, {64, 64}, {65, 65}, {5, 2100}, {600, 5}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct Case {
    Dtype storage, momentum;
    int64_t rows, columns, step;
    float norm, clip_norm;
    double deviation; /* of the gradient */
    bool no_working;
} Case;

static MuonShape shape_of(const Case *c) {
    return (MuonShape){.rows = c->rows,
                       .columns = c->columns,
                       .momentum = c->momentum,
                       .rate = 0.75f,
                       .weight_decay = 0.5f,
                       .beta2 = 0.9f,
                       .clip_norm = c->clip_norm,
                       .tensor = 3};
}

static void open_case(Trial *trial, const Case *c) {
    trial_open(trial, c->storage);
    trial->scalars = (StepScalars){.learning_rate = 0.02f,
                                   .gradient_scale = 0.7f,
                                   .momentum = 0.95f,
                                   .weight_decay = 0.3f,
                                   .step = c->step,
                                   .seed = 0x123456789abcdef};
}

typedef struct Begin {
    int update, momentum, gradient;
} Begin;

static Begin add_begin(Trial *trial, const Case *c) {
    const int64_t n = c->rows * c->columns;
    Begin b = {.update = trial_output(trial, c->storage, n),
               .momentum = trial_random(trial, c->momentum, n, c->deviation),
               .gradient = trial_random(trial, DTYPE_F32, n, c->deviation)};
    Operation *operation = trial_operation(trial, OP_MUON_BEGIN);
    operation->outputs[0] = whole(b.update), operation->outputs[1] = whole(b.momentum);
    operation->outputs[2] = whole(b.gradient);
    operation->inputs[0] = whole(trial_given(trial, DTYPE_F32, 1, &c->norm));
    operation->muon = shape_of(c);
    return b;
}

static void check_begin(const Case *c) {
    Trial trial;
    open_case(&trial, c);
    const Begin b = add_begin(&trial, c);
    trial_run(&trial);
    trial_same(&trial, b.momentum);
    trial_same(&trial, b.gradient);
    trial_close_to(&trial, b.update, rounding(c->storage), 1e-9);
    if (!isfinite(c->norm))
        assert_memory_equal(trial.cuda[b.momentum], trial.start[b.momentum],
                            (size_t)trial.bytes[b.momentum]);
    trial_close(&trial);
}

/* In both storage types, with momentum in both formats. */
static void for_each_format(void (*check)(const Case *c), Case c) {
    for (c.storage = DTYPE_F32; c.storage <= DTYPE_BF16; c.storage++)
        for (c.momentum = DTYPE_F32; c.momentum <= DTYPE_BF16; c.momentum++) check(&c);
}

static void for_each_shape(void (*check)(const Case *c), Case c) {
    for (int i = 0; i < SHAPES; i++) {
        c.rows = shapes[i][0], c.columns = shapes[i][1];
        for (c.storage = DTYPE_F32; c.storage <= DTYPE_BF16; c.storage++) check(&c);
    }
}

static void test_begin(void **state) {
    (void)state;
    Case c = {.step = 1, .norm = 1, .deviation = 0.1};
    for_each_shape(check_begin, c);
    c.momentum = DTYPE_BF16;
    for_each_shape(check_begin, c);
}

static void test_begin_clipped(void **state) {
    (void)state;
    const Case c = {.rows = 7, .columns = 13, .step = 1234567, .norm = 2.5f, .deviation = 1};
    Case clipped = c;
    clipped.clip_norm = 1;
    for_each_format(check_begin, clipped);
    clipped.clip_norm = 3; /* above the norm */
    for_each_format(check_begin, clipped);
}

static void test_begin_without_gradient(void **state) {
    (void)state;
    for_each_format(check_begin, (Case){.rows = 5, .columns = 9, .step = 2, .norm = 0});
    for_each_format(check_begin, (Case){.rows = 9, .columns = 5, .step = 2, .norm = 0});
}

/* Rows whose norm counts as 1e-6, beside others. */
static void test_begin_rows_of_zeros(void **state) {
    (void)state;
    const Case c = {.storage = DTYPE_F32,
                    .momentum = DTYPE_F32,
                    .rows = 4,
                    .columns = 6,
                    .step = 1,
                    .norm = 1,
                    .deviation = 1};
    Trial trial;
    open_case(&trial, &c);
    const Begin b = add_begin(&trial, &c);
    float *momentum = trial_data(&trial, b.momentum), *gradient = trial_data(&trial, b.gradient);
    for (int64_t i = 0; i < c.columns; i++) momentum[i] = gradient[i] = 0;
    for (int64_t i = 0; i < c.columns; i++)
        momentum[c.columns + i] = gradient[c.columns + i] = 1e-9f;
    trial_run(&trial);
    trial_close_to(&trial, b.update, 1e-5, 0);
    trial_close(&trial);
}

static void test_begin_not_finite(void **state) {
    (void)state;
    for_each_format(check_begin,
                    (Case){.rows = 6, .columns = 12, .step = 5, .norm = NAN, .deviation = 1});
    for_each_format(check_begin,
                    (Case){.rows = 12, .columns = 6, .step = 5, .norm = INFINITY, .deviation = 1});
}

static void check_polynomial(Dtype storage, int64_t m) {
    Trial trial;
    trial_open(&trial, storage);
    int first = trial_random(&trial, storage, m * m, 1);
    int second = trial_random(&trial, storage, m * m, 1);
    int out = trial_output(&trial, storage, m * m);
    Operation *operation = trial_operation(&trial, OP_MUON_POLYNOMIAL);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(first), operation->inputs[1] = whole(second);
    operation->polynomial = (PolynomialShape){.m = m, .a = 8.16f, .b = -22.48f, .c = 15.88f};
    trial_run(&trial);
    trial_close_to(&trial, out, rounding(storage), 1e-5);
    trial_close(&trial);
}

static void test_polynomial(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 3, 6, 33, 64, 270};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < 6; i++) check_polynomial(storage, sizes[i]);
}

static int positive(Trial *trial, int64_t elements, double deviation) {
    const int buffer = trial_random(trial, DTYPE_F32, elements, deviation);
    float *values = trial_data(trial, buffer);
    for (int64_t i = 0; i < elements; i++) values[i] = fabsf(values[i]);
    return buffer;
}

/* Returns the variance's buffer. */
static int add_end(Trial *trial, const Case *c, int update, int norm) {
    const int64_t n = c->rows * c->columns;
    const int64_t groups = c->rows > c->columns ? c->rows : c->columns;
    Operation *operation = trial_operation(trial, OP_MUON_END);
    operation->outputs[0] = whole(trial_random(trial, DTYPE_F32, n, 0.1));
    if (!c->no_working) operation->outputs[1] = whole(trial_output(trial, c->storage, n));
    const int variance = positive(trial, groups, 0.01);
    operation->outputs[2] = whole(variance);
    operation->inputs[0] = whole(update), operation->inputs[1] = whole(norm);
    operation->muon = shape_of(c);
    return variance;
}

static void check_end(const Case *c) {
    Trial trial;
    open_case(&trial, c);
    const int update = trial_random(&trial, c->storage, c->rows * c->columns, c->deviation);
    const int norm = trial_given(&trial, DTYPE_F32, 1, &c->norm);
    add_end(&trial, c, update, norm);
    trial_run(&trial);
    for (int buffer = 0; buffer < trial.program.buffer_count; buffer++) {
        if (isfinite(c->norm))
            trial_close_to(&trial, buffer, rounding(trial.program.buffers[buffer].dtype), 1e-7);
        else
            assert_memory_equal(trial.cuda[buffer], trial.start[buffer],
                                (size_t)trial.bytes[buffer]);
    }
    trial_close(&trial);
}

static void test_end(void **state) {
    (void)state;
    for_each_shape(check_end, (Case){.step = 1, .norm = 1, .deviation = 0.3});
}

/* A tall, a wide and a square matrix. */
static void for_each_form(void (*check)(const Case *c), Case c) {
    static const int64_t forms[][2] = {{40, 6}, {6, 40}, {33, 33}};
    for (int i = 0; i < 3; i++) {
        c.rows = forms[i][0], c.columns = forms[i][1];
        for (c.storage = DTYPE_F32; c.storage <= DTYPE_BF16; c.storage++) check(&c);
    }
}

static void test_end_without_working_copy(void **state) {
    (void)state;
    const Case c = {.step = 1, .norm = 1, .deviation = 0.3, .no_working = true};
    for_each_form(check_end, c);
}

/* Norms and variances that count as the least there are. */
static void test_end_of_zeros(void **state) {
    (void)state;
    for_each_form(check_end, (Case){.step = 1, .norm = 1, .deviation = 0});
}

/* A column so small that its variance counts as the least there is, beside others. */
static void test_end_least_variance(void **state) {
    (void)state;
    enum { ROWS = 6, COLUMNS = 40 };
    const Case c = {.rows = ROWS, .columns = COLUMNS, .step = 1, .norm = 1};
    Trial trial;
    open_case(&trial, &c);
    const int update = trial_random(&trial, DTYPE_F32, ROWS * COLUMNS, 1);
    const int norm = trial_given(&trial, DTYPE_F32, 1, &c.norm);
    const int variance = add_end(&trial, &c, update, norm);
    float *x = trial_data(&trial, update), *variances = trial_data(&trial, variance);
    variances[3] = 0;
    for (int row = 0; row < ROWS; row++) x[row * COLUMNS + 3] *= 1e-5f;
    trial_run(&trial);
    trial_close_to(&trial, norm + 1, 1e-5, 1e-7); /* the weights */
    trial_close(&trial);
}

static void test_end_not_finite(void **state) {
    (void)state;
    for_each_form(check_end, (Case){.step = 1, .norm = NAN, .deviation = 0.3});
}

static int add_matmul(Trial *trial, int a, int b, MatmulShape shape) {
    const Dtype storage = trial->program.storage;
    const int out = trial_output(trial, storage, shape.M * shape.N);
    Operation *operation = trial_operation(trial, OP_MATMUL);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(a), operation->inputs[1] = whole(b);
    operation->inputs[2] = operand_none;
    operation->matmul = shape;
    return out;
}

/* One step of the iteration: (a I + b X X' + c (X X')^2) X */
static int add_step(Trial *trial, int update, int64_t m, int64_t n) {
    const MatmulShape gram = {.M = m, .N = m, .K = n, .transpose_b = true},
                      square = {.M = m, .N = m, .K = m}, product = {.M = m, .N = n, .K = m};
    const int first = add_matmul(trial, update, update, gram);
    const int second = add_matmul(trial, first, first, square);
    const int polynomial = trial_output(trial, trial->program.storage, m * m);
    Operation *operation = trial_operation(trial, OP_MUON_POLYNOMIAL);
    operation->outputs[0] = whole(polynomial);
    operation->inputs[0] = whole(first), operation->inputs[1] = whole(second);
    operation->polynomial = (PolynomialShape){.m = m, .a = 4.04f, .b = -2.81f, .c = 0.5f};
    return add_matmul(trial, polynomial, update, product);
}

/* From gradient to weights, with cuBLASLt's products of odd sizes between. */
static void check_update(const Case *c) {
    Trial trial;
    open_case(&trial, c);
    const int64_t m = c->rows < c->columns ? c->rows : c->columns, n = c->rows + c->columns - m;
    int update = add_begin(&trial, c).update;
    for (int i = 0; i < 2; i++) update = add_step(&trial, update, m, n);
    const int norm = trial_given(&trial, DTYPE_F32, 1, &c->norm);
    add_end(&trial, c, update, norm);
    trial_run(&trial);
    trial_close_to(&trial, update, 0, c->storage == DTYPE_BF16 ? 0.02 : 1e-5);
    trial_close_to(&trial, norm + 1, 0, c->storage == DTYPE_BF16 ? 1e-3 : 1e-6); /* the weights */
    trial_close(&trial);
}

static void test_update(void **state) {
    (void)state;
    for_each_shape(check_update, (Case){.step = 1, .norm = 1, .deviation = 0.1});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin),
        cmocka_unit_test(test_begin_clipped),
        cmocka_unit_test(test_begin_without_gradient),
        cmocka_unit_test(test_begin_rows_of_zeros),
        cmocka_unit_test(test_begin_not_finite),
        cmocka_unit_test(test_polynomial),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_end_without_working_copy),
        cmocka_unit_test(test_end_of_zeros),
        cmocka_unit_test(test_end_least_variance),
        cmocka_unit_test(test_end_not_finite),
        cmocka_unit_test(test_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
