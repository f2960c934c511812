#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    int64_t N, T, D, offset;
    bool inverse, in_place;
    Array x, out, table, dout;
} Case;

enum { HEADS = 5, ROTATED = 3 };

static uint64_t run(void *context) {
    Case *c = context;
    if (c->in_place) memcpy(c->out.data, c->x.data, array_bytes(&c->x));
    c->kernels->rope(c->out.data, c->in_place ? c->out.data : c->x.data, c->table.data, NULL, c->N,
                     c->T, HEADS, ROTATED, c->D, c->offset, c->inverse);
    return array_hash(0, &c->out);
}

/* out = x turned by the angle, or by its negative. */
static void reference(const Case *c, double *out, const double *x, bool inverse) {
    memcpy(out, x, (size_t)(c->N * HEADS * c->D) * sizeof *out);
    for (int64_t n = 0; n < c->N; n++)
        for (int64_t head = 0; head < ROTATED; head++)
            for (int64_t i = 0; i < c->D / 2; i++) {
                const double *turn = c->table.exact + ((c->offset + n % c->T) * (c->D / 2) + i) * 2;
                int64_t first = (n * HEADS + head) * c->D + i, second = first + c->D / 2;
                double cosine = turn[0], sine = inverse ? -turn[1] : turn[1];
                out[first] = x[first] * cosine - x[second] * sine;
                out[second] = x[second] * cosine + x[first] * sine;
            }
}

static double loss(void *context) {
    Case *c = context;
    reference(c, c->out.exact, c->x.exact, false);
    return inner_product(c->out.exact, c->dout.exact, c->out.count);
}

static Case make_case(const CpuKernels *kernels, int64_t B, int64_t T, int64_t D) {
    Case c = {.kernels = kernels, .N = B * T, .T = T, .D = D, .offset = 3};
    c.x = array_random(kernels->storage, c.N * HEADS * D, 1);
    c.out = array_of(kernels->storage, c.x.count, NAN);
    c.dout = array_random(kernels->storage, c.x.count, 1);
    c.table = array_of(DTYPE_F32, (T + c.offset) * D, 0);
    for (int64_t position = 0; position < T + c.offset; position++)
        for (int64_t i = 0; i < D / 2; i++) {
            double angle = (double)position * pow(10000, -2 * (double)i / (double)D);
            array_set(&c.table, (position * (D / 2) + i) * 2, cos(angle));
            array_set(&c.table, (position * (D / 2) + i) * 2 + 1, sin(angle));
        }
    return c;
}

static void check_size(const CpuKernels *kernels, int64_t B, int64_t T, int64_t D) {
    for (int variant = 0; variant < 4; variant++) {
        Case c = make_case(kernels, B, T, D);
        c.inverse = variant & 1, c.in_place = variant & 2;
        same_for_all_threads(run, &c);
        reference(&c, c.out.exact, c.x.exact, c.inverse);
        array_check("out", &c.out, 1e-6, 1e-6);
        double *dx = keep((size_t)c.x.count * sizeof *dx);
        reference(&c, dx, c.dout.exact, true); /* the backward is the inverse, of the gradient */
        check_gradient("x", c.x.exact, dx, c.x.count, loss, &c);
        release_arrays();
    }
}

static void check(const CpuKernels *kernels) {
    static const int64_t dims[] = {2, 10, 64, 112, 128, 256};
    for (int d = 0; d < 6; d++) {
        check_size(kernels, 1, 1, dims[d]);
        check_size(kernels, 2, 7, dims[d]);
        check_size(kernels, 1, 129, dims[d]);
    }
}

static void test_rope(void **state) {
    (void)state;
    for_each_instance(check);
}

static void check_inverse(const CpuKernels *kernels) {
    if (kernels->storage != DTYPE_F32) return;
    Case c = make_case(kernels, 1, 9, 112);
    kernels->rope(c.out.data, c.x.data, c.table.data, NULL, 9, 9, HEADS, HEADS, 112, 0, false);
    kernels->rope(c.out.data, c.out.data, c.table.data, NULL, 9, 9, HEADS, HEADS, 112, 0, true);
    memcpy(c.out.exact, c.x.exact, (size_t)c.x.count * sizeof(double));
    array_check("there and back", &c.out, 1e-6, 1e-6);
    release_arrays();
}

static void test_inverse(void **state) {
    (void)state;
    for_each_instance(check_inverse);
}

/* A branch's tokens are turned as those of a row that begins where the branch does. */
static void check_branches(const CpuKernels *kernels) {
    enum { TOKENS = 9, D = 64 };
    const int32_t starts[TOKENS] = {0, 0, 2, 2, 2, 5, 6, 6, 6};
    Case c = make_case(kernels, 1, TOKENS, D);
    kernels->rope(c.out.data, c.x.data, c.table.data, starts, TOKENS, TOKENS, HEADS, ROTATED, D,
                  c.offset, false);
    for (int64_t n = 0; n < TOKENS; n++) {
        Array row = array_of(kernels->storage, HEADS * D, NAN);
        const int64_t at = n * dtype_size(kernels->storage) * HEADS * D;
        kernels->rope(row.data, (const char *)c.x.data + at, c.table.data, NULL, 1, 1, HEADS,
                      ROTATED, D, c.offset + n - starts[n], false);
        assert_memory_equal((const char *)c.out.data + at, row.data, array_bytes(&row));
    }
    release_arrays();
}

static void test_branches(void **state) {
    (void)state;
    for_each_instance(check_branches);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_inverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
