#include "kernel_test.h"

typedef enum Residual { NONE, SEPARATE, IN_PLACE } Residual;

typedef struct Case {
    const CpuKernels *kernels;
    int64_t N, C;
    Residual residual;
    bool weighted;
    Array x, weight, out, rstd, dout, above, dx, dweight, start;
    void *workspace;
} Case;

static const float epsilon = 1e-5f;

static uint64_t run(void *context) {
    Case *c = context;
    const void *weight = c->weighted ? c->weight.data : NULL;
    c->kernels->rmsnorm_forward(c->out.data, c->rstd.data, c->x.data, weight, c->N, c->C, epsilon);
    memcpy(c->dweight.data, c->start.data, array_bytes(&c->start));
    const void *above = c->residual == NONE ? NULL : c->above.data;
    if (c->residual == IN_PLACE) above = memcpy(c->dx.data, c->above.data, array_bytes(&c->dx));
    c->kernels->rmsnorm_backward(c->dx.data, c->weighted ? c->dweight.data : NULL, c->dout.data,
                                 above, c->x.data, c->rstd.data, weight,
                                 c->weighted ? c->workspace : NULL, c->N, c->C);
    uint64_t hash = array_hash(array_hash(0, &c->out), &c->rstd);
    return array_hash(array_hash(hash, &c->dx), &c->dweight);
}

static void reference_forward(Case *c) {
    for (int64_t n = 0; n < c->N; n++) {
        const double *x = c->x.exact + n * c->C;
        double rstd = 1 / sqrt(inner_product(x, x, c->C) / (double)c->C + (double)epsilon);
        c->rstd.exact[n] = rstd;
        for (int64_t i = 0; i < c->C; i++)
            c->out.exact[n * c->C + i] = x[i] * rstd * c->weight.exact[i];
    }
}

/* From the Jacobian d out_j / d x_i = w_j (r [i = j] - r^3 x_i x_j / C). */
static void reference_backward(Case *c) {
    memcpy(c->dweight.exact, c->start.exact, (size_t)c->C * sizeof(double));
    for (int64_t n = 0; n < c->N; n++) {
        const double *x = c->x.exact + n * c->C, *dout = c->dout.exact + n * c->C;
        double rstd = c->rstd.exact[n], sum = 0;
        for (int64_t j = 0; j < c->C; j++) sum += dout[j] * c->weight.exact[j] * x[j];
        for (int64_t i = 0; i < c->C; i++) {
            double above = c->residual == NONE ? 0 : c->above.exact[n * c->C + i];
            c->dx.exact[n * c->C + i] = above + dout[i] * c->weight.exact[i] * rstd -
                                        pow(rstd, 3) * x[i] * sum / (double)c->C;
            c->dweight.exact[i] += dout[i] * x[i] * rstd;
        }
    }
}

static double loss(void *context) {
    Case *c = context;
    reference_forward(c);
    double residual =
        c->residual == NONE ? 0 : inner_product(c->above.exact, c->x.exact, c->N * c->C);
    return inner_product(c->out.exact, c->dout.exact, c->N * c->C) + residual +
           inner_product(c->start.exact, c->weight.exact, c->C);
}

static void check_size(const CpuKernels *kernels, int64_t N, int64_t C, Residual residual,
                       bool weighted) {
    Dtype storage = kernels->storage;
    Case c = {.kernels = kernels, .N = N, .C = C, .residual = residual, .weighted = weighted};
    c.x = array_random(storage, N * C, 2);
    c.weight = weighted ? array_random(storage, C, 1) : array_of(storage, C, 1);
    c.out = array_of(storage, N * C, NAN);
    c.rstd = array_of(DTYPE_F32, N, NAN);
    c.dout = array_random(storage, N * C, 1);
    c.above = array_random(storage, N * C, 1);
    c.dx = array_of(storage, N * C, NAN);
    c.start = array_random(DTYPE_F32, C, 1);
    c.dweight = array_of(DTYPE_F32, C, NAN);
    c.workspace = keep(kernels->rmsnorm_workspace(N, C));
    same_for_all_threads(run, &c);
    reference_forward(&c);
    reference_backward(&c);
    array_check("rstd", &c.rstd, 1e-6, 0);
    array_check("out", &c.out, 1e-6, 1e-7);
    array_check("dx", &c.dx, 1e-6, 2e-6);
    if (weighted) array_check("dweight", &c.dweight, 1e-6, 2e-5);
    check_gradient("x", c.x.exact, c.dx.exact, N * C, loss, &c);
    check_gradient("weight", c.weight.exact, c.dweight.exact, C, loss, &c);
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t rows[] = {1, 7, 129}, widths[] = {10, 64, 100, 768};
    for (int n = 0; n < 3; n++)
        for (int w = 0; w < 4; w++)
            for (Residual residual = NONE; residual <= IN_PLACE; residual++) {
                check_size(kernels, rows[n], widths[w], residual, true);
                check_size(kernels, rows[n], widths[w], residual, false);
            }
}

static void test_rmsnorm(void **state) {
    (void)state;
    for_each_instance(check);
}

static void check_zero_row(const CpuKernels *kernels) {
    Array x = array_of(kernels->storage, 20, 0), weight = array_of(kernels->storage, 20, 1);
    Array out = array_of(kernels->storage, 20, NAN), rstd = array_of(DTYPE_F32, 1, NAN);
    kernels->rmsnorm_forward(out.data, rstd.data, x.data, weight.data, 1, 20, epsilon);
    for (int i = 0; i < 20; i++) assert_true(array_get(&out, i) == 0);
    release_arrays();
}

static void test_zero_row(void **state) {
    (void)state;
    for_each_instance(check_zero_row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_zero_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
