#include "trial.h"

static void check(Dtype storage, int64_t N, int64_t F, double deviation) {
    Trial trial;
    trial_open(&trial, storage);
    int gate_up = trial_random(&trial, storage, N * 2 * F, deviation);
    int dout = trial_random(&trial, storage, N * F, 1);
    int out = trial_output(&trial, storage, N * F);
    int dgate_up = trial_output(&trial, storage, N * 2 * F);
    Operation *forward = trial_operation(&trial, OP_SWIGLU_FORWARD);
    forward->outputs[0] = whole(out);
    forward->inputs[0] = whole(gate_up);
    forward->swiglu.N = N, forward->swiglu.F = F;
    Operation *backward = trial_operation(&trial, OP_SWIGLU_BACKWARD);
    backward->outputs[0] = whole(dgate_up);
    backward->inputs[0] = whole(dout), backward->inputs[1] = whole(gate_up);
    backward->swiglu.N = N, backward->swiglu.F = F;
    trial_run(&trial);
    double rounding = storage == DTYPE_BF16 ? 0x1p-7 : 1e-5;
    trial_close_to(&trial, out, rounding, 1e-6);
    trial_close_to(&trial, dgate_up, rounding, 2e-6);
    trial_close(&trial);
}

static void test_shapes(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 7, 8, 64, 250, 2056};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < 6; i++) {
            check(storage, 1, widths[i], 2);
            check(storage, 3, widths[i], 2);
        }
}

/* Exponentials overflow and vanish. */
static void test_large_gates(void **state) {
    (void)state;
    check(DTYPE_F32, 2, 64, 100);
    check(DTYPE_BF16, 2, 64, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_large_gates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
