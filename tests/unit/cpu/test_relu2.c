#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    int64_t n;
    bool in_place;
    Array x, out, dout, dx;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->kernels->relu2_forward(c->out.data, c->x.data, c->n);
    const void *above = c->dout.data;
    if (c->in_place) above = memcpy(c->dx.data, c->dout.data, array_bytes(&c->dx));
    c->kernels->relu2_backward(c->dx.data, above, c->x.data, c->n);
    return array_hash(array_hash(0, &c->out), &c->dx);
}

static double loss(void *context) {
    Case *c = context;
    for (int64_t i = 0; i < c->n; i++) c->out.exact[i] = pow(fmax(c->x.exact[i], 0), 2);
    return inner_product(c->out.exact, c->dout.exact, c->n);
}

static void check_size(const CpuKernels *kernels, int64_t n, bool in_place) {
    Dtype storage = kernels->storage;
    Case c = {.kernels = kernels, .n = n, .in_place = in_place};
    c.x = array_random(storage, n, 2);
    c.out = array_of(storage, n, NAN);
    c.dout = array_random(storage, n, 1);
    c.dx = array_of(storage, n, NAN);
    same_for_all_threads(run, &c);
    loss(&c);
    for (int64_t i = 0; i < n; i++)
        c.dx.exact[i] = c.x.exact[i] > 0 ? 2 * c.x.exact[i] * c.dout.exact[i] : 0;
    array_check("out", &c.out, 1e-6, 0);
    array_check("dx", &c.dx, 1e-6, 0);
    check_gradient("x", c.x.exact, c.dx.exact, n, loss, &c);
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t sizes[] = {1, 7, 16, 101, 5000};
    for (int s = 0; s < 5; s++) {
        check_size(kernels, sizes[s], false);
        check_size(kernels, sizes[s], true);
    }
}

static void test_relu2(void **state) {
    (void)state;
    for_each_instance(check);
}

static void check_not_finite(const CpuKernels *kernels) {
    Array x = array_of(kernels->storage, 19, NAN), out = array_of(kernels->storage, 19, 0);
    kernels->relu2_forward(out.data, x.data, 19);
    for (int i = 0; i < 19; i++) assert_true(isnan(array_get(&out, i)));
    release_arrays();
}

static void test_not_finite(void **state) {
    (void)state;
    for_each_instance(check_not_finite);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relu2),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
