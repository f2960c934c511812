/* Muon's whole update as the program runs it: against double precision, against nanochat's own optimizer,
 * and what it must leave alone. */
#include "optim/optimizer.h"

#include <jansson.h>
#include <omp.h>
#include <string.h>

#include "base/random.h"
#include "cpu/backend.h"
#include "muon_reference.h"
#include "support.h"

enum { SEED = 1234, MOST = 8, STEPS = 10 };

/* Matrices [rows,columns], all updated by Muon. */
typedef struct Case {
    int count;
    int64_t shapes[MOST][2];
    bool stacked; /* as parameters of one weight; else a weight each */
} Case;

typedef struct Run {
    Program program;
    Executor *executor;
} Run;

static const MuonRates rates = {0.02f, 0.28f, 0.9f};

static OptimizerSettings settings_of(StateFormat state) {
    OptimizerSettings settings = optimizer_adamw(&(AdamwSettings){.beta1 = 0.9f, .beta2 = 0.95f});
    settings.state = state;
    settings.groups[WEIGHT_MATRIX] = (OptimizerGroup){.muon = true,
                                                      .rate = 1,
                                                      .beta2 = (float)rates.beta2,
                                                      .weight_decay = (float)rates.weight_decay};
    return settings;
}

/* The matrices, and a vector for AdamW between and behind them. */
static void declare(Program *program, const Case *c) {
    int64_t rows = 0;
    for (int k = 0; k < c->count; k++) rows += c->shapes[k][0];
    for (int k = 0; k < c->count; k++) {
        int64_t columns = c->shapes[k][1];
        if (!c->stacked || !k)
            program_weight(program, k, c->stacked ? rows : c->shapes[k][0], columns, WEIGHT_MATRIX,
                           "matrix %d", k);
        program_parameter(program, c->shapes[k][0], INIT_CONSTANT, 0, 0, "matrix.%d", k);
        if (c->stacked && k < c->count - 1) continue;
        program_weight(program, k, 1, 3, WEIGHT_VECTOR, "vector %d", k);
        program_parameter(program, 1, INIT_CONSTANT, 0, 0, "vector.%d", k);
    }
}

static void open_run(Run *run, const Case *c, Dtype storage, const OptimizerSettings *settings) {
    Error error;
    program_init(&run->program, storage);
    declare(&run->program, c);
    program_make_weight_buffers(&run->program, true);
    optimizer_write_update(&run->program, settings);
    assert_done(program_finish(&run->program, &error), error);
    assert_done(layout_program(&run->program, &backend_cpu, &error), error);
    run->executor = backend_cpu.open(&run->program, &error);
    assert_done(run->executor, error);
}

static void close_run(Run *run) {
    backend_cpu.close(run->executor);
    program_free(&run->program);
}

static const Parameter *parameter_of(const Run *run, int k) {
    char name[32];
    snprintf(name, sizeof name, "matrix.%d", k);
    for (int i = 0; i < run->program.parameter_count; i++)
        if (!strcmp(run->program.parameters[i].name, name)) return &run->program.parameters[i];
    fail_msg("there is no %s", name);
    return NULL;
}

static int64_t offset_of(const Run *run, int k) {
    const Parameter *parameter = parameter_of(run, k);
    const Weight *weight = &run->program.weights[parameter->weight];
    return weight->offset + parameter->first_row * weight->columns;
}

static float *draw(uint64_t stream, int64_t count, float scale) {
    float *values = test_calloc((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (random_uniform(SEED, stream, (uint64_t)i) - 0.5f) * scale;
    return values;
}

static float *first_weights(const Case *c, int k) {
    return draw((uint64_t)k, c->shapes[k][0] * c->shapes[k][1], 0.25f);
}

static float *gradient_of(const Case *c, int64_t step, int k) {
    return draw((uint64_t)(100 * step + k), c->shapes[k][0] * c->shapes[k][1], 0.0625f);
}

static void put(Run *run, int buffer, int k, int64_t count, float *values) {
    backend_cpu.upload(run->executor, buffer, offset_of(run, k) * 4, values, count * 4);
    test_free(values);
}

static void start(Run *run, const Case *c) {
    for (int k = 0; k < c->count; k++)
        put(run, run->program.master, k, c->shapes[k][0] * c->shapes[k][1], first_weights(c, k));
}

/* The scalars of a step, which the golden file has too. */
static StepScalars scalars_of(int64_t step) {
    return (StepScalars){.learning_rate = (float)rates.rate,
                         .gradient_scale = 1,
                         .momentum = (float)(0.84 + 0.01 * (double)step),
                         .weight_decay = (float)(1.05 - 0.05 * (double)step),
                         .step = step,
                         .seed = 3};
}

static void update(Run *run, StepScalars scalars) {
    Error error;
    assert_done(backend_cpu.run(run->executor, SECTION_UPDATE, &scalars, &error), error);
}

static void take_step(Run *run, const Case *c, int64_t step) {
    for (int k = 0; k < c->count; k++)
        put(run, run->program.gradient, k, c->shapes[k][0] * c->shapes[k][1],
            gradient_of(c, step, k));
    update(run, scalars_of(step));
}

static float *get(Run *run, int buffer, int64_t offset, int64_t count) {
    Error error;
    float *values = test_calloc((size_t)count, sizeof *values);
    assert_done(backend_cpu.download(run->executor, buffer, offset * 4, values, count * 4, &error),
                error);
    return values;
}

static float *master_of(Run *run, const Case *c, int k) {
    return get(run, run->program.master, offset_of(run, k), c->shapes[k][0] * c->shapes[k][1]);
}

/* ---- Against double precision ---- */

static double *widen(float *values, int64_t count) {
    double *wide = test_calloc((size_t)count, sizeof *wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)values[i];
    test_free(values);
    return wide;
}

/* Matrix k after `steps` steps, in double precision. */
static double *expected(const Case *c, int k, int64_t steps) {
    int64_t rows = c->shapes[k][0], columns = c->shapes[k][1], n = rows * columns;
    double *master = widen(first_weights(c, k), n);
    double *momentum = test_calloc((size_t)n, sizeof *momentum),
           *variance = test_calloc((size_t)n, sizeof *variance),
           *x = test_calloc((size_t)n, sizeof *x);
    double tallness = (double)rows / (double)columns;
    for (int64_t step = 1; step <= steps; step++) {
        StepScalars scalars = scalars_of(step);
        MuonRates now = rates;
        now.rate *= sqrt(fmax(1, tallness));
        now.weight_decay *= (double)scalars.weight_decay;
        double *gradient = widen(gradient_of(c, step, k), n);
        reference_begin(x, momentum, gradient, rows, columns, (double)scalars.momentum);
        reference_polar(x, rows, columns);
        reference_end(master, variance, x, rows, columns, now);
        test_free(gradient);
    }
    test_free(momentum);
    test_free(variance);
    test_free(x);
    return master;
}

/* The largest difference of a weight, over its rate. */
static double compare(Dtype storage, const Case *c) {
    Run run;
    OptimizerSettings settings = settings_of(STATE_FP32);
    double worst = 0;
    open_run(&run, c, storage, &settings);
    start(&run, c);
    for (int64_t step = 1; step <= STEPS; step++) {
        take_step(&run, c, step);
        for (int k = 0; k < c->count; k++) {
            double *want = expected(c, k, step);
            float *got = master_of(&run, c, k);
            for (int64_t i = 0; i < c->shapes[k][0] * c->shapes[k][1]; i++)
                worst = fmax(worst, fabs((double)got[i] - want[i]) / rates.rate);
            test_free(want);
            test_free(got);
        }
    }
    close_run(&run);
    return worst;
}

static const Case shapes = {
    8, {{5, 7}, {7, 5}, {6, 6}, {3, 12}, {12, 3}, {1, 1}, {40, 24}, {1, 90}}, false};
static const Case stack = {3, {{24, 16}, {8, 16}, {16, 16}}, true};

static void test_double_precision(void **state) {
    (void)state;
    double apart = compare(DTYPE_F32, &shapes), stacked = compare(DTYPE_F32, &stack);
    print_message("fp32: a weight is off by at most %.1e and %.1e learning rates in %d steps\n",
                  apart, stacked, STEPS);
    assert_true(apart < 5e-5 && stacked < 5e-5); /* 1e-6 of a weight */
}

static void test_bf16(void **state) {
    (void)state;
    double apart = compare(DTYPE_BF16, &shapes), stacked = compare(DTYPE_BF16, &stack);
    print_message("bf16: a weight is off by at most %.2f and %.2f learning rates in %d steps\n",
                  apart, stacked, STEPS);
    assert_true(apart < 1 && stacked < 1);
}

/* ---- Against nanochat ---- */

static double number(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

static void test_nanochat(void **state) {
    (void)state;
    json_error_t problem;
    json_t *golden = json_load_file(HEARTH_SOURCE "/tests/golden/muon/muon.json", 0, &problem);
    if (!golden) fail_msg("muon.json: %s", problem.text);
    const json_t *matrices = json_object_get(golden, "matrices");
    Case c = {.count = (int)json_array_size(matrices)};
    assert_in_range(c.count, 1, MOST);
    for (int k = 0; k < c.count; k++)
        for (size_t i = 0; i < 2; i++)
            c.shapes[k][i] = json_integer_value(
                json_array_get(json_object_get(json_array_get(matrices, (size_t)k), "shape"), i));
    assert_true(fabs(number(golden, "learning_rate") - rates.rate) < 1e-8);
    assert_true(fabs(number(golden, "weight_decay") - rates.weight_decay) < 1e-7);

    Run run;
    OptimizerSettings settings = settings_of(STATE_FP32);
    open_run(&run, &c, DTYPE_F32, &settings);
    start(&run, &c);
    for (int64_t step = 1; step <= STEPS; step++) take_step(&run, &c, step);
    double worst = 0;
    for (int k = 0; k < c.count; k++) {
        const json_t *values = json_object_get(json_array_get(matrices, (size_t)k), "values");
        float *got = master_of(&run, &c, k);
        assert_int_equal(json_array_size(values), c.shapes[k][0] * c.shapes[k][1]);
        for (size_t i = 0; i < json_array_size(values); i++)
            worst =
                fmax(worst, fabs((double)got[i] - json_number_value(json_array_get(values, i))));
        test_free(got);
    }
    print_message("a weight differs from nanochat's by at most %.1e after %d steps\n", worst,
                  STEPS);
    assert_true(worst < 2e-6);
    close_run(&run);
    json_decref(golden);
}

/* ---- What changes nothing ---- */

static void assert_same_state(Run *run, int buffer, const float *before) {
    const Buffer *held = &run->program.buffers[buffer];
    int64_t words = buffer_bytes(held) / 4;
    float *now = get(run, buffer, 0, words);
    assert_memory_equal(now, before, (size_t)words * 4);
    test_free(now);
}

static void test_gradient_that_is_not_finite(void **state) {
    (void)state;
    Run run;
    OptimizerSettings settings = settings_of(STATE_BF16);
    open_run(&run, &shapes, DTYPE_BF16, &settings);
    start(&run, &shapes);
    take_step(&run, &shapes, 1);
    const int buffers[] = {run.program.master, run.program.working, run.program.momentum,
                           run.program.variance};
    float *before[4];
    for (int i = 0; i < 4; i++)
        before[i] = get(&run, buffers[i], 0, buffer_bytes(&run.program.buffers[buffers[i]]) / 4);
    float *gradient = gradient_of(&shapes, 2, 3);
    gradient[5] = NAN;
    put(&run, run.program.gradient, 3, shapes.shapes[3][0] * shapes.shapes[3][1], gradient);
    update(&run, scalars_of(2));
    for (int i = 0; i < 4; i++) {
        assert_same_state(&run, buffers[i], before[i]);
        test_free(before[i]);
    }
    int64_t elements = program_weight_elements(&run.program);
    gradient = get(&run, run.program.gradient, 0, elements);
    for (int64_t i = 0; i < elements; i++) assert_true(gradient[i] == 0);
    test_free(gradient);
    close_run(&run);
}

/* A gradient of ten times the norm that is clipped is the gradient itself. */
static void test_clipping(void **state) {
    (void)state;
    Run run[2];
    OptimizerSettings settings = settings_of(STATE_FP32);
    settings.clip_norm = 0.01f;
    for (int i = 0; i < 2; i++) {
        open_run(&run[i], &stack, DTYPE_F32, &settings);
        start(&run[i], &stack);
        for (int k = 0; k < stack.count; k++)
            put(&run[i], run[i].program.gradient, k, stack.shapes[k][0] * stack.shapes[k][1],
                gradient_of(&stack, 1, k));
        StepScalars scalars = scalars_of(1);
        scalars.gradient_scale = i ? 10 : 1;
        update(&run[i], scalars);
    }
    int64_t elements = run[0].program.buffers[run[0].program.momentum].elements;
    float *one = get(&run[0], run[0].program.momentum, 0, elements),
          *ten = get(&run[1], run[1].program.momentum, 0, elements);
    for (int64_t i = 0; i < elements; i++)
        assert_true(fabs((double)one[i] - (double)ten[i]) <= 2e-5 * fabs((double)one[i]));
    test_free(one);
    test_free(ten);
    for (int i = 0; i < 2; i++) close_run(&run[i]);
}

static void test_same_bits_with_any_threads(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        float *first = NULL;
        int64_t elements = 0;
        for (int threads = 1; threads <= 3; threads++) {
            Run run;
            OptimizerSettings settings = settings_of(STATE_BF16);
            omp_set_num_threads(threads);
            open_run(&run, &shapes, storage, &settings);
            start(&run, &shapes);
            for (int64_t step = 1; step <= 3; step++) take_step(&run, &shapes, step);
            elements = program_weight_elements(&run.program);
            float *now = get(&run, run.program.master, 0, elements);
            if (first) assert_memory_equal(now, first, (size_t)elements * 4);
            if (first)
                test_free(now);
            else
                first = now;
            close_run(&run);
        }
        test_free(first);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double_precision), cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_nanochat),         cmocka_unit_test(test_gradient_that_is_not_finite),
        cmocka_unit_test(test_clipping),         cmocka_unit_test(test_same_bits_with_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
