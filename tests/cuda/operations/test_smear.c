#include "trial.h"

/* One token, rows of one, odd widths, columns beyond 256 threads of 8. */
static const SmearShape cases[] = {{.N = 1, .T = 1, .C = 8},   {.N = 4, .T = 1, .C = 16},
                                   {.N = 6, .T = 3, .C = 33},  {.N = 20, .T = 4, .C = 264},
                                   {.N = 9, .T = 9, .C = 300}, {.N = 4, .T = 2, .C = 2065}};

static double rounding(Dtype storage) {
    return storage == DTYPE_BF16 ? 0x1p-7 : 1e-6;
}

static void check_forward(Dtype storage, SmearShape shape, bool given) {
    const int64_t N = shape.N, C = shape.C;
    Trial trial;
    trial_open(&trial, storage);
    int x = trial_random(&trial, storage, N * C, 1);
    int gates = trial_random(&trial, DTYPE_F32, N, 1);
    int lambda = trial_random(&trial, DTYPE_F32, 1, 1);
    int previous = given ? trial_random(&trial, storage, N * C, 1) : -1;
    int out = trial_output(&trial, storage, N * C);
    Operation *operation = trial_operation(&trial, OP_SMEAR_FORWARD);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x), operation->inputs[1] = whole(gates);
    operation->inputs[2] = whole(lambda), operation->inputs[3] = whole(previous);
    operation->smear = shape;
    trial_run(&trial);
    trial_close_to(&trial, out, rounding(storage), 1e-6);
    trial_close(&trial);
}

static void check_backward(Dtype storage, SmearShape shape) {
    const int64_t N = shape.N, C = shape.C;
    Trial trial;
    trial_open(&trial, storage);
    int dout = trial_random(&trial, storage, N * C, 1);
    int x = trial_random(&trial, storage, N * C, 1);
    int gates = trial_random(&trial, DTYPE_F32, N, 1);
    int lambda = trial_random(&trial, DTYPE_F32, 1, 1);
    int dx = trial_output(&trial, storage, N * C);
    int dgates = trial_output(&trial, DTYPE_F32, N);
    int dlambda = trial_random(&trial, DTYPE_F32, 1, 1);
    Operation *operation = trial_operation(&trial, OP_SMEAR_BACKWARD);
    operation->outputs[0] = whole(dx), operation->outputs[1] = whole(dgates);
    operation->outputs[2] = whole(dlambda);
    operation->inputs[0] = whole(dout), operation->inputs[1] = whole(x);
    operation->inputs[2] = whole(gates), operation->inputs[3] = whole(lambda);
    operation->smear = shape;
    trial_run(&trial);
    trial_close_to(&trial, dx, rounding(storage), 1e-6);
    trial_close_to(&trial, dgates, 1e-5, 1e-4);
    trial_close_to(&trial, dlambda, 1e-5, 1e-4);
    trial_close(&trial);
}

static void test_forward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            check_forward(storage, cases[i], false);
            check_forward(storage, cases[i], true);
        }
}

static void test_backward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_backward(storage, cases[i]);
}

static void test_more_tokens_than_warps(void **state) {
    (void)state;
    check_backward(DTYPE_F32, (SmearShape){.N = 8200, .T = 41, .C = 3});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward),
                                       cmocka_unit_test(test_backward),
                                       cmocka_unit_test(test_more_tokens_than_warps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
