#include "step/cost.h"
#include "support.h"

static double count_pairs(int64_t T, int64_t window) {
    double pairs = 0;
    for (int64_t query = 0; query < T; query++)
        for (int64_t key = 0; key <= query; key++) pairs += window < 0 || query - key <= window;
    return pairs;
}

static void test_attention_pairs_are_exact(void **state) {
    (void)state;
    for (int64_t T = 1; T <= 40; T++)
        for (int64_t window = -1; window <= T + 1; window++)
            assert_true(attention_pairs(T, window) == count_pairs(T, window));
}

static void test_devices(void **state) {
    (void)state;
    Error error;
    Device device;
    for (const char *const *name = device_names(); *name; name++)
        assert_done(device_find(&device, *name, DTYPE_BF16, &error), error);
    assert_done(device_find(&device, "RTX-5090", DTYPE_BF16, &error), error);
    assert_true(device.memory == (int64_t)32606 << 20);
    assert_fails_with(device_find(&device, "rtx-5091", DTYPE_BF16, &error), error, "rtx-5090");
}

static void test_matmul_cost(void **state) {
    (void)state;
    Program program;
    program_init(&program, DTYPE_BF16);
    int a = program_buffer(&program, BUFFER_ACTIVATION, DTYPE_BF16, 6 * 4, "a");
    int b = program_buffer(&program, BUFFER_ACTIVATION, DTYPE_BF16, 4 * 5, "b");
    int out = program_buffer(&program, BUFFER_ACTIVATION, DTYPE_F32, 6 * 5, "out");
    Operation *matmul = program_add(&program, OP_MATMUL, 0);
    matmul->matmul = (MatmulShape){.M = 6, .N = 5, .K = 4};
    matmul->inputs[0] = whole(a), matmul->inputs[1] = whole(b), matmul->outputs[0] = whole(out);
    Cost cost = operation_cost(&program, matmul);
    assert_true(cost.flops == 240 && cost.useful == 240 && cost.bytes == 48 + 40 + 120);
    matmul->recomputed = true;
    assert_true(operation_cost(&program, matmul).useful == 0);
    program_free(&program);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention_pairs_are_exact),
                                       cmocka_unit_test(test_devices),
                                       cmocka_unit_test(test_matmul_cost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
