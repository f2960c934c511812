/* A product or two for each number: the CPU's bits. */
#include "trial.h"

static void check(Dtype storage, int64_t n) {
    Trial trial;
    trial_open(&trial, storage);
    int x = trial_random(&trial, storage, n, 1), out = trial_output(&trial, storage, n);
    int dout = trial_random(&trial, storage, n, 1), dx = trial_output(&trial, storage, n);

    Operation *forward = trial_operation(&trial, OP_RELU2_FORWARD);
    forward->outputs[0] = whole(out), forward->inputs[0] = whole(x);
    forward->elements.n = n;
    Operation *backward = trial_operation(&trial, OP_RELU2_BACKWARD);
    backward->outputs[0] = whole(dx);
    backward->inputs[0] = whole(dout), backward->inputs[1] = whole(x);
    backward->elements.n = n;

    trial_run(&trial);
    trial_same(&trial, out);
    trial_same(&trial, dx);
    trial_close(&trial);
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 8, 31, 2048, 5003};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check(storage, sizes[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
