#include "trial.h"

static void check(int64_t n) {
    Trial trial;
    trial_open(&trial, DTYPE_F32);
    int losses = trial_random(&trial, DTYPE_F32, n, 3);
    int sum = trial_random(&trial, DTYPE_F64, 1, 100); /* of the micro-batches before */
    Operation *operation = trial_operation(&trial, OP_LOSS_SUM);
    operation->outputs[0] = whole(sum);
    operation->inputs[0] = whole(losses);
    operation->elements.n = n;
    trial_run(&trial);
    trial_close_to(&trial, sum, 1e-13, 1e-11);
    trial_close(&trial);
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 33, 512, 513, 5000};
    for (int i = 0; i < 5; i++) check(sizes[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
