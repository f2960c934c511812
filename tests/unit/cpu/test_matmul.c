/* Matrix products against double precision, in every instance: layouts, addends and types, sizes that
 * fill no tile, no panel and no chunk, and the same bits with any number of threads. */
#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    MatmulShape shape;
    bool out_f32, adds, in_place;
    Array a, b, start, out;
} Case;

enum { BEHIND = 8 }; /* numbers behind the output that nobody may touch */

static double element(const Array *x, int64_t row, int64_t column, int64_t rows, int64_t columns,
                      bool transposed) {
    return x->exact[transposed ? column * rows + row : row * columns + column];
}

/* At about 500 places; each is allowed the rounding of its fp32 additions. */
static void check_out(const Case *c) {
    const MatmulShape *s = &c->shape;
    const int64_t count = s->M * s->N, stride = count / 499 + 1;
    for (int64_t i = 0; i < count; i += stride) {
        const int64_t m = i / s->N, n = i % s->N;
        double exact = c->adds ? c->start.exact[i] : 0, magnitude = fabs(exact);
        for (int64_t k = 0; k < s->K; k++) {
            double product = element(&c->a, m, k, s->M, s->K, s->transpose_a) *
                             element(&c->b, k, n, s->K, s->N, s->transpose_b);
            exact += product, magnitude += fabs(product);
        }
        const double got = array_get(&c->out, i);
        const double rounding = c->out.dtype == DTYPE_BF16 ? fabs(exact) / 256 : 0;
        if (!(fabs(got - exact) <= magnitude * 1e-6 + rounding))
            fail_msg("%s: M %d N %d K %d: element %d is %g, not %g", c->kernels->isa, (int)s->M,
                     (int)s->N, (int)s->K, (int)i, got, exact);
    }
    for (int64_t i = count; i < count + BEHIND; i++) assert_true(array_get(&c->out, i) == 3);
}

static uint64_t run_case(void *context) {
    Case *c = context;
    const MatmulShape *s = &c->shape;
    const CpuKernels *kernels = c->kernels;
    if (s->transpose_a || c->in_place) memcpy(c->out.data, c->start.data, array_bytes(&c->start));
    void *workspace = malloc(s->transpose_a ? kernels->weight_gradient_workspace(*s)
                                            : kernels->matmul_workspace(*s));
    assert_non_null(workspace);
    if (s->transpose_a)
        kernels->weight_gradient(c->out.data, c->a.data, c->b.data, workspace, *s);
    else
        kernels->matmul(c->out.data, c->a.data, c->b.data,
                        !c->adds      ? NULL
                        : c->in_place ? c->out.data
                                      : c->start.data,
                        workspace, *s, c->out_f32);
    free(workspace);
    return array_hash(1, &c->out);
}

static void check_case(const CpuKernels *kernels, MatmulShape shape, bool out_f32, bool adds,
                       bool in_place) {
    const Dtype type = out_f32 ? DTYPE_F32 : kernels->storage;
    Case c = {kernels, shape, out_f32, adds, in_place};
    c.a = array_random(kernels->storage, shape.M * shape.K, 1);
    c.b = array_random(kernels->storage, shape.K * shape.N, 1);
    c.start = array_random(type, shape.M * shape.N, 1);
    c.out = array_of(type, shape.M * shape.N + BEHIND, 3);
    same_for_all_threads(run_case, &c);
    check_out(&c);
    release_arrays();
}

static void check_shapes(const CpuKernels *kernels) {
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 100, 64},  {7, 33, 129},
                                       {64, 48, 31}, {19, 145, 96}, {130, 288, 300}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        MatmulShape shape = {.M = sizes[i][0], .N = sizes[i][1], .K = sizes[i][2]};
        for (int variant = 0; variant < 16; variant++) {
            shape.transpose_b = variant & 1;
            check_case(kernels, shape, variant & 2, variant & 4, variant & 8);
        }
        check_case(kernels,
                   (MatmulShape){.M = shape.M, .N = shape.N, .K = shape.K, .transpose_a = true},
                   true, true, false);
    }
}

static void test_shapes(void **state) {
    (void)state;
    for_each_instance(check_shapes);
}

/* Several chunks of K in both kernels, and several blocks of rows. */
static void check_long(const CpuKernels *kernels) {
    for (int transpose_b = 0; transpose_b < 2; transpose_b++)
        check_case(kernels, (MatmulShape){.M = 21, .N = 70, .K = 4999, .transpose_b = transpose_b},
                   false, true, false);
    check_case(kernels, (MatmulShape){.M = 2100, .N = 20, .K = 40}, false, false, false);
    check_case(kernels, (MatmulShape){.M = 101, .N = 50, .K = 4099, .transpose_a = true}, true,
               true, false);
}

static void test_long(void **state) {
    (void)state;
    for_each_instance(check_long);
}

/* What lies in memory behind an operand's row must not enter a sum, even when it is not a number. */
static void check_neighbours(const CpuKernels *kernels) {
    enum { M = 5, N = 7, K = 33 };
    for (int transpose_b = 0; transpose_b < 2; transpose_b++) {
        Array a = array_random(kernels->storage, M * K, 1),
              b = array_random(kernels->storage, K * N, 1);
        Array out = array_of(kernels->storage, M * N, 0);
        MatmulShape shape = {.M = M, .N = N, .K = K, .transpose_b = transpose_b};
        void *workspace = malloc(kernels->matmul_workspace(shape));
        for (int64_t k = 0; k < K; k++) array_set(&a, K + k, NAN);
        kernels->matmul(out.data, a.data, b.data, NULL, workspace, shape, false);
        for (int64_t i = 0; i < M * N; i++) assert_true(!isnan(array_get(&out, i)) == (i / N != 1));
        free(workspace);
        release_arrays();
    }
}

static void test_neighbours(void **state) {
    (void)state;
    for_each_instance(check_neighbours);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_neighbours)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
