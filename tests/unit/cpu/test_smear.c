#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    SmearShape shape;
    Array x, gates, lambda, previous, out, dout, dx, dgates, start, dlambda;
    void *workspace;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->kernels->smear_forward(c->out.data, c->x.data, c->gates.data, c->lambda.data, NULL,
                              c->shape);
    memcpy(c->dlambda.data, c->start.data, sizeof(float));
    c->kernels->smear_backward(c->dx.data, c->dgates.data, c->dlambda.data, c->dout.data, c->x.data,
                               c->gates.data, c->lambda.data, c->workspace, c->shape);
    uint64_t hash = array_hash(array_hash(0, &c->out), &c->dx);
    return array_hash(array_hash(hash, &c->dgates), &c->dlambda);
}

static double loss(void *context) {
    Case *c = context;
    const int64_t C = c->shape.C;
    for (int64_t i = 0; i < c->out.count; i++) {
        bool first = i / C % c->shape.T == 0;
        double share = *c->lambda.exact * c->gates.exact[i / C];
        c->out.exact[i] = c->x.exact[i] + (first ? 0 : share * c->x.exact[i - C]);
    }
    return inner_product(c->out.exact, c->dout.exact, c->out.count) +
           *c->start.exact * *c->lambda.exact;
}

static void reference_backward(Case *c) {
    const int64_t C = c->shape.C;
    *c->dlambda.exact = *c->start.exact;
    memcpy(c->dx.exact, c->dout.exact, (size_t)c->dx.count * sizeof(double));
    for (int64_t n = 0; n < c->shape.N; n++) {
        c->dgates.exact[n] = 0;
        if (n % c->shape.T == 0) continue;
        const double *dout = c->dout.exact + n * C;
        double along = inner_product(dout, c->x.exact + (n - 1) * C, C);
        c->dgates.exact[n] = *c->lambda.exact * along;
        *c->dlambda.exact += c->gates.exact[n] * along;
        for (int64_t i = 0; i < C; i++)
            c->dx.exact[(n - 1) * C + i] += *c->lambda.exact * c->gates.exact[n] * dout[i];
    }
}

/* With the rows before them given, and so for each row by itself. */
static void check_previous(Case *c) {
    const int64_t C = c->shape.C;
    c->kernels->smear_forward(c->out.data, c->x.data, c->gates.data, c->lambda.data,
                              c->previous.data, c->shape);
    for (int64_t i = 0; i < c->out.count; i++)
        c->out.exact[i] =
            c->x.exact[i] + *c->lambda.exact * c->gates.exact[i / C] * c->previous.exact[i];
    array_check("out with previous", &c->out, 1e-6, 1e-6);
}

static void check_size(const CpuKernels *kernels, int64_t B, int64_t T, int64_t C) {
    Dtype storage = kernels->storage;
    const int64_t N = B * T;
    Case c = {.kernels = kernels, .shape = {N, T, C}};
    c.x = array_random(storage, N * C, 1);
    c.gates = array_random(DTYPE_F32, N, 1);
    c.lambda = array_random(DTYPE_F32, 1, 1);
    c.previous = array_random(storage, N * C, 1);
    c.out = array_of(storage, N * C, NAN);
    c.dout = array_random(storage, N * C, 1);
    c.dx = array_of(storage, N * C, NAN);
    c.dgates = array_of(DTYPE_F32, N, NAN);
    c.start = array_random(DTYPE_F32, 1, 1);
    c.dlambda = array_of(DTYPE_F32, 1, NAN);
    c.workspace = keep(kernels->smear_workspace(c.shape));
    same_for_all_threads(run, &c);
    loss(&c);
    reference_backward(&c);
    array_check("out", &c.out, 1e-6, 1e-6);
    array_check("dx", &c.dx, 1e-6, 1e-6);
    array_check("dgates", &c.dgates, 1e-6, 2e-5);
    array_check("dlambda", &c.dlambda, 1e-6, 2e-5 * sqrt((double)N));
    check_gradient("x", c.x.exact, c.dx.exact, N * C, loss, &c);
    check_gradient("gates", c.gates.exact, c.dgates.exact, N, loss, &c);
    check_gradient("lambda", c.lambda.exact, c.dlambda.exact, 1, loss, &c);
    check_previous(&c);
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t widths[] = {10, 64, 100, 768};
    for (int w = 0; w < 4; w++) {
        check_size(kernels, 1, 1, widths[w]);
        check_size(kernels, 3, 1, widths[w]);
        check_size(kernels, 2, 7, widths[w]);
        check_size(kernels, 3, 43, widths[w]);
    }
}

static void test_smear(void **state) {
    (void)state;
    for_each_instance(check);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_smear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
