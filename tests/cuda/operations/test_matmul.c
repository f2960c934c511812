/* Matrix products by cuBLASLt, as the test driver computes them, against the CPU's. */
#include "trial.h"

typedef struct Case {
    MatmulShape shape;
    bool adds, in_place, out_f32;
} Case;

static void check_case(Dtype storage, const Case *test) {
    Trial trial;
    MatmulShape shape = test->shape;
    Dtype out_type = test->out_f32 ? DTYPE_F32 : storage;
    trial_open(&trial, storage);
    int a = trial_random(&trial, storage, shape.M * shape.K, 1);
    int b = trial_random(&trial, storage, shape.K * shape.N, 1);
    int addend = test->adds ? trial_random(&trial, out_type, shape.M * shape.N, 1) : -1;
    int out = test->in_place ? addend : trial_output(&trial, out_type, shape.M * shape.N);
    Operation *operation = trial_operation(&trial, OP_MATMUL);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(a), operation->inputs[1] = whole(b);
    operation->inputs[2] = whole(addend);
    operation->matmul = shape;
    trial_run(&trial);
    double rounding = out_type == DTYPE_BF16 ? 0x1p-7 : 2e-5;
    trial_close_to(&trial, out, rounding, rounding);
    trial_close(&trial);
}

static void test_products(void **state) {
    (void)state;
    static const Case cases[] = {
        {.shape = {.M = 1, .N = 1, .K = 1, .transpose_b = true}},
        {.shape = {.M = 33, .N = 61, .K = 48, .transpose_b = true}},
        {.shape = {.M = 33, .N = 61, .K = 48, .transpose_b = true}, .adds = true},
        {.shape = {.M = 64, .N = 96, .K = 40}},
        {.shape = {.M = 7, .N = 96, .K = 61}, .out_f32 = true},
        {.shape = {.M = 61, .N = 48, .K = 33, .transpose_a = true},
         .adds = true,
         .in_place = true,
         .out_f32 = true},
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(storage, &cases[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
