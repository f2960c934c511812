#include "trial.h"

#include <math.h>

static void check(int64_t n, double deviation, bool in_place) {
    Trial trial;
    trial_open(&trial, DTYPE_BF16);
    int x = trial_random(&trial, DTYPE_F32, n, deviation);
    int out = in_place ? x : trial_output(&trial, DTYPE_F32, n);
    float *first = trial_data(&trial, x);
    first[0] = 0;
    if (n > 2) first[1] = INFINITY, first[2] = -INFINITY;
    Operation *operation = trial_operation(&trial, OP_SOFT_CAP);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x);
    operation->soft_cap.n = n, operation->soft_cap.cap = 15;
    trial_run(&trial);
    trial_close_to(&trial, out, 1e-6, 1e-6);
    trial_close(&trial);
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 5, 1024, 2051};
    for (int i = 0; i < 4; i++) {
        check(sizes[i], 0.01, false);
        check(sizes[i], 10, true);
        check(sizes[i], 1000, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
