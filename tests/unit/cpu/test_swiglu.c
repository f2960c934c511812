#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    int64_t N, F;
    Array gate_up, out, dout, dgate_up;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->kernels->swiglu_forward(c->out.data, c->gate_up.data, c->N, c->F);
    c->kernels->swiglu_backward(c->dgate_up.data, c->dout.data, c->gate_up.data, c->N, c->F);
    return array_hash(array_hash(0, &c->out), &c->dgate_up);
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double loss(void *context) {
    Case *c = context;
    for (int64_t n = 0; n < c->N; n++)
        for (int64_t f = 0; f < c->F; f++) {
            double gate = c->gate_up.exact[n * 2 * c->F + f],
                   up = c->gate_up.exact[n * 2 * c->F + c->F + f];
            c->out.exact[n * c->F + f] = gate * sigmoid(gate) * up;
        }
    return inner_product(c->out.exact, c->dout.exact, c->out.count);
}

static void reference_backward(Case *c) {
    for (int64_t n = 0; n < c->N; n++)
        for (int64_t f = 0; f < c->F; f++) {
            int64_t at = n * 2 * c->F + f;
            double gate = c->gate_up.exact[at], up = c->gate_up.exact[at + c->F];
            double dout = c->dout.exact[n * c->F + f], s = sigmoid(gate);
            c->dgate_up.exact[at] = dout * up * (s + gate * s * (1 - s));
            c->dgate_up.exact[at + c->F] = dout * gate * s;
        }
}

static void check_size(const CpuKernels *kernels, int64_t N, int64_t F, double deviation) {
    Dtype storage = kernels->storage;
    Case c = {.kernels = kernels, .N = N, .F = F};
    c.gate_up = array_random(storage, N * 2 * F, deviation);
    c.out = array_of(storage, N * F, NAN);
    c.dout = array_random(storage, N * F, 1);
    c.dgate_up = array_of(storage, N * 2 * F, NAN);
    same_for_all_threads(run, &c);
    loss(&c);
    reference_backward(&c);
    /* Where 1 + g (1 - s) cancels, near g = -1.28, only the absolute error is small. */
    array_check("out", &c.out, 1e-6, 1e-30);
    array_check("dgate_up", &c.dgate_up, 2e-6, 2e-6 * deviation);
    if (deviation <= 2)
        check_gradient("gate_up", c.gate_up.exact, c.dgate_up.exact, N * 2 * F, loss, &c);
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t rows[] = {1, 7, 129}, widths[] = {1, 7, 64, 101, 517, 768};
    for (int n = 0; n < 3; n++)
        for (int w = 0; w < 6; w++) {
            check_size(kernels, rows[n], widths[w], 1.5);
            check_size(kernels, rows[n], widths[w], 100); /* far into both tails */
        }
}

static void test_swiglu(void **state) {
    (void)state;
    for_each_instance(check);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_swiglu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
