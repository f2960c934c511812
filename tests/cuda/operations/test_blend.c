#include "trial.h"

static const int64_t sizes[] = {1, 8, 33, 2048, 5003};

static double rounding(Dtype storage) {
    return storage == DTYPE_BF16 ? 0x1p-7 : 1e-6;
}

/* A factor in device memory, or none. */
static int factor(Trial *trial, bool given) {
    return given ? trial_random(trial, DTYPE_F32, 1, 1) : -1;
}

static void check_forward(Dtype storage, BlendShape shape, bool has_a, bool has_b) {
    Trial trial;
    trial_open(&trial, storage);
    int x = trial_random(&trial, storage, shape.n, 1),
        y = trial_random(&trial, storage, shape.n, 1);
    int a = factor(&trial, has_a), b = factor(&trial, has_b);
    int out = trial_output(&trial, storage, shape.n);
    Operation *operation = trial_operation(&trial, OP_BLEND_FORWARD);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x), operation->inputs[1] = whole(y);
    operation->inputs[2] = whole(a), operation->inputs[3] = whole(b);
    operation->blend = shape;
    trial_run(&trial);
    trial_close_to(&trial, out, rounding(storage), 1e-6);
    trial_close(&trial);
}

typedef enum Addend { NO_ADDEND, ADDEND, ADDEND_IN_PLACE } Addend;

static void check_backward(Dtype storage, BlendShape shape, bool has_a, Addend addend) {
    Trial trial;
    trial_open(&trial, storage);
    int dout = trial_random(&trial, storage, shape.n, 1);
    int x = trial_random(&trial, storage, shape.n, 1),
        y = trial_random(&trial, storage, shape.n, 1);
    int a = factor(&trial, has_a), b = factor(&trial, true);
    int dy_addend = addend == NO_ADDEND ? -1 : trial_random(&trial, storage, shape.n, 1);
    int dy = addend == ADDEND_IN_PLACE ? dy_addend : trial_output(&trial, storage, shape.n);
    int dx = trial_output(&trial, storage, shape.n);
    int da = factor(&trial, has_a), db = factor(&trial, true);
    Operation *operation = trial_operation(&trial, OP_BLEND_BACKWARD);
    operation->outputs[0] = whole(dx), operation->outputs[1] = whole(dy);
    operation->outputs[2] = whole(da), operation->outputs[3] = whole(db);
    operation->inputs[0] = whole(dout), operation->inputs[1] = whole(x);
    operation->inputs[2] = whole(y), operation->inputs[3] = whole(a);
    operation->inputs[4] = whole(b), operation->inputs[5] = whole(dy_addend);
    operation->blend = shape;
    trial_run(&trial);
    trial_close_to(&trial, dx, rounding(storage), 0);
    trial_close_to(&trial, dy, rounding(storage), 1e-6);
    if (has_a) trial_close_to(&trial, da, 1e-5, 1e-4);
    trial_close_to(&trial, db, 1e-5, 1e-4);
    trial_close(&trial);
}

static void test_forward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int factors = 0; factors < 4; factors++)
                check_forward(storage, (BlendShape){sizes[i], factors % 2 ? 1 : -1}, factors & 1,
                              factors & 2);
}

static void test_backward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (Addend addend = NO_ADDEND; addend <= ADDEND_IN_PLACE; addend++) {
                check_backward(storage, (BlendShape){sizes[i], 1}, true, addend);
                check_backward(storage, (BlendShape){sizes[i], -1}, false, addend);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward),
                                       cmocka_unit_test(test_backward)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
