#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    int64_t n;
    float cap;
    Array x, out;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->kernels->soft_cap(c->out.data, c->x.data, c->n, c->cap);
    return array_hash(0, &c->out);
}

static void check_size(const CpuKernels *kernels, int64_t n, float cap, double deviation) {
    Case c = {.kernels = kernels, .n = n, .cap = cap};
    c.x = array_random(DTYPE_F32, n, deviation);
    c.out = array_of(DTYPE_F32, n, NAN);
    same_for_all_threads(run, &c);
    for (int64_t i = 0; i < n; i++) c.out.exact[i] = (double)cap * tanh(c.x.exact[i] / (double)cap);
    array_check("out", &c.out, 5e-7, 0); /* small values and large ones alike */
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t sizes[] = {1, 19, 5000};
    for (int s = 0; s < 3; s++)
        for (double deviation = 1e-6; deviation < 1e6; deviation *= 10)
            check_size(kernels, sizes[s], s == 1 ? 30 : 15, deviation);
}

static void test_soft_cap(void **state) {
    (void)state;
    for_each_instance(check);
}

static void check_not_finite(const CpuKernels *kernels) {
    float x[] = {NAN, INFINITY, -INFINITY}, out[3];
    kernels->soft_cap(out, x, 3, 15);
    assert_true(isnan(out[0]) && out[1] == 15 && out[2] == -15);
}

static void test_not_finite(void **state) {
    (void)state;
    for_each_instance(check_not_finite);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soft_cap),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
