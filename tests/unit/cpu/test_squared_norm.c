#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    Array x;
    double result;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->result = c->kernels->squared_norm(c->x.data, c->x.count);
    return hash_bytes(0, &c->result, sizeof c->result);
}

static void check_size(int64_t n, double deviation) {
    static const char *const isas[] = {"portable", "avx2", "avx512", "avx512bf16", "neon"};
    Error error;
    Case c = {.x = array_random(DTYPE_F32, n, deviation)};
    long double exact = 0;
    for (int64_t i = 0; i < n; i++) exact += (long double)c.x.exact[i] * (long double)c.x.exact[i];
    uint64_t first = 0;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        setenv("HEARTH_ISA", isas[i], 1);
        c.kernels = cpu_kernels(DTYPE_F32, &error);
        if (!c.kernels) continue;
        uint64_t hash = same_for_all_threads(run, &c);
        if (i == 0) first = hash;
        assert_true(hash == first); /* the same bits in every instance */
        assert_true(fabsl((long double)c.result - exact) <= 1e-13L * exact);
    }
    unsetenv("HEARTH_ISA");
    release_arrays();
}

static void test_squared_norm(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 7, 255, 257, 4097, 300007};
    for (int s = 0; s < 7; s++) {
        check_size(sizes[s], 1);
        check_size(sizes[s], 1e30); /* squares beyond fp32 */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_squared_norm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
