/* The update section as it is written: which state, rates and costs the weights of each optimizer have. */
#include <math.h>

#include "optim/optimizer.h"
#include "step/cost.h"
#include "support.h"

/* A stack of matrices that Muon updates, and a vector for AdamW. */
enum { MATRICES = 3, COLUMNS = 16, VECTOR = 3 };
static const int64_t rows[MATRICES] = {24, 8, 16};

static OptimizerSettings settings_of(StateFormat state) {
    OptimizerSettings settings = optimizer_adamw(&(AdamwSettings){.beta1 = 0.9f, .beta2 = 0.95f});
    settings.state = state;
    settings.groups[WEIGHT_MATRIX] = (OptimizerGroup){.muon = true, .rate = 2, .beta2 = 0.9f};
    return settings;
}

static void write_program(Program *program, StateFormat state) {
    Error error;
    OptimizerSettings settings = settings_of(state);
    program_init(program, DTYPE_BF16);
    program_weight(program, 0, 24 + 8 + 16, COLUMNS, WEIGHT_MATRIX, "stack");
    for (int k = 0; k < MATRICES; k++)
        program_parameter(program, rows[k], INIT_CONSTANT, 0, 0, "matrix.%d", k);
    program_weight(program, 0, 1, VECTOR, WEIGHT_VECTOR, "vector");
    program_parameter(program, 1, INIT_CONSTANT, 0, 0, "vector");
    program_make_weight_buffers(program, true);
    optimizer_write_update(program, &settings);
    assert_done(program_finish(program, &error), error);
}

/* Each optimizer has state for its own weights, rounded up to where vectors begin. */
static void test_state(void **state) {
    (void)state;
    Program program;
    write_program(&program, STATE_8BIT);
    assert_int_equal(program.buffers[program.moment1].elements, 256); /* of the vector */
    assert_int_equal(program.buffers[program.momentum].elements, 512 + 256 + 256);
    assert_int_equal(program.buffers[program.momentum].dtype, DTYPE_BF16);
    assert_int_equal(program.buffers[program.variance].elements, 3 * 256);
    assert_int_equal(program.weights[0].state_offset, -1);
    assert_int_equal(program.weights[1].state_offset, 0);
    assert_int_equal(program.parameters[2].momentum_offset, 512 + 256);
    assert_int_equal(program.parameters[3].momentum_offset, -1);
    program_free(&program);
    write_program(&program, STATE_FP32);
    assert_int_equal(program.buffers[program.momentum].dtype, DTYPE_F32);
    program_free(&program);
}

/* A matrix that is taller than wide learns faster. */
static void test_rates(void **state) {
    (void)state;
    Program program;
    int found = 0;
    write_program(&program, STATE_FP32);
    for (int o = 0; o < program.operation_count; o++) {
        const Operation *operation = &program.operations[o];
        if (operation->kind != OP_MUON_END) continue;
        double tallness = fmax(1, (double)rows[found++] / COLUMNS);
        assert_true(fabs((double)operation->muon.rate - 2 * sqrt(tallness)) < 1e-6);
    }
    assert_int_equal(found, MATRICES);
    program_free(&program);
}

/* Muon's matmuls cost what they compute, and are no part of what the model needs. */
static void test_cost(void **state) {
    (void)state;
    Program program;
    const Device device = {
        .matmul_flops = 1e12, .efficiency = 1, .vector_flops = 1e11, .bandwidth = 1e10};
    double flops = 0, expected = 0, kinds[OPERATION_KINDS] = {0};
    write_program(&program, STATE_FP32);
    for (int o = 0; o < program.operation_count; o++)
        if (program.operations[o].kind == OP_MATMUL)
            flops += operation_cost(&program, &program.operations[o]).flops;
    for (int k = 0; k < MATRICES; k++) {
        double m = fmin((double)rows[k], COLUMNS), n = fmax((double)rows[k], COLUMNS);
        expected += 5 * (4 * m * m * n + 2 * m * m * m);
    }
    assert_true(flops == expected);
    assert_true(section_cost(&program, SECTION_UPDATE).useful == 0);
    double seconds = section_seconds(&program, SECTION_UPDATE, &device, kinds);
    double others = kinds[OP_ADAMW] + kinds[OP_GRADIENT_NORM];
    assert_true(fabs(muon_seconds(&program, &device) + others - seconds) < 1e-9 * seconds);
    program_free(&program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
