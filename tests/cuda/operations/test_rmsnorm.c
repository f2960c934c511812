#include "trial.h"

typedef struct Case {
    int64_t N, C;
} Case;

/* Columns beyond 256 threads of 8, rows beyond the blocks of the backward, blocks beyond the 32 warps that
 * add them up, one of each, odd ones. */
static const Case cases[] = {{1, 1},    {1, 40},   {3, 33},  {7, 64},
                             {17, 264}, {2, 2065}, {70, 24}, {340, 9}};

static double rounding(Dtype storage) {
    return storage == DTYPE_BF16 ? 0x1p-7 : 1e-5;
}

static void check_forward(Dtype storage, Case c, bool weighted) {
    Trial trial;
    trial_open(&trial, storage);
    int x = trial_random(&trial, storage, c.N * c.C, 2);
    int weight = weighted ? trial_random(&trial, storage, c.C, 1) : -1;
    int out = trial_output(&trial, storage, c.N * c.C);
    int rstd = trial_output(&trial, DTYPE_F32, c.N);
    Operation *operation = trial_operation(&trial, OP_RMSNORM_FORWARD);
    operation->outputs[0] = whole(out), operation->outputs[1] = whole(rstd);
    operation->inputs[0] = whole(x), operation->inputs[1] = whole(weight);
    operation->norm.N = c.N, operation->norm.C = c.C, operation->norm.eps = 1e-5f;
    trial_run(&trial);
    trial_close_to(&trial, out, rounding(storage), 1e-6);
    trial_close_to(&trial, rstd, 2e-6, 0);
    trial_close(&trial);
}

typedef enum Residual { NO_RESIDUAL, RESIDUAL, RESIDUAL_IN_PLACE } Residual;

static void check_backward(Dtype storage, Case c, Residual residual, bool weighted) {
    Trial trial;
    trial_open(&trial, storage);
    int dout = trial_random(&trial, storage, c.N * c.C, 1);
    int x = trial_random(&trial, storage, c.N * c.C, 1);
    int weight = weighted ? trial_random(&trial, storage, c.C, 1) : -1;
    int rstd = trial_random(&trial, DTYPE_F32, c.N, 0.3);
    int dresidual = residual == NO_RESIDUAL ? -1 : trial_random(&trial, storage, c.N * c.C, 1);
    int dx = residual == RESIDUAL_IN_PLACE ? dresidual : trial_output(&trial, storage, c.N * c.C);
    int dweight = weighted ? trial_random(&trial, DTYPE_F32, c.C, 1) : -1;
    Operation *operation = trial_operation(&trial, OP_RMSNORM_BACKWARD);
    operation->outputs[0] = whole(dx), operation->outputs[1] = whole(dweight);
    operation->inputs[0] = whole(dout), operation->inputs[1] = whole(dresidual);
    operation->inputs[2] = whole(x), operation->inputs[3] = whole(rstd);
    operation->inputs[4] = whole(weight);
    operation->norm.N = c.N, operation->norm.C = c.C;
    trial_run(&trial);
    trial_close_to(&trial, dx, rounding(storage), 1e-5);
    if (weighted) trial_close_to(&trial, dweight, 1e-5, 1e-5);
    trial_close(&trial);
}

static void test_forward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            check_forward(storage, cases[i], true);
            check_forward(storage, cases[i], false);
        }
}

static void test_backward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (Residual residual = NO_RESIDUAL; residual <= RESIDUAL_IN_PLACE; residual++) {
                check_backward(storage, cases[i], residual, true);
                check_backward(storage, cases[i], residual, false);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward),
                                       cmocka_unit_test(test_backward)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
