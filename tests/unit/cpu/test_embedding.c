#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    int64_t N, C, V;
    int32_t *tokens;
    Array weight, out, dout, dweight, start;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->kernels->embedding_forward(c->out.data, c->tokens, c->weight.data, c->N, c->C);
    memcpy(c->dweight.data, c->start.data, array_bytes(&c->start));
    c->kernels->embedding_backward(c->dweight.data, c->dout.data, c->tokens, c->N, c->C);
    return array_hash(array_hash(0, &c->out), &c->dweight);
}

static void reference(Case *c) {
    memcpy(c->dweight.exact, c->start.exact, (size_t)(c->V * c->C) * sizeof(double));
    for (int64_t n = 0; n < c->N; n++)
        for (int64_t i = 0; i < c->C; i++) {
            c->out.exact[n * c->C + i] = c->weight.exact[c->tokens[n] * c->C + i];
            c->dweight.exact[c->tokens[n] * c->C + i] += c->dout.exact[n * c->C + i];
        }
}

static double loss(void *context) {
    Case *c = context;
    reference(c);
    return inner_product(c->out.exact, c->dout.exact, c->N * c->C) +
           inner_product(c->start.exact, c->weight.exact, c->V * c->C);
}

static void check_size(const CpuKernels *kernels, int64_t N, int64_t C, int64_t V) {
    Dtype storage = kernels->storage;
    Case c = {.kernels = kernels, .N = N, .C = C, .V = V, .tokens = tokens_random(N, V)};
    c.weight = array_random(storage, V * C, 1);
    c.out = array_of(storage, N * C, NAN);
    c.dout = array_random(storage, N * C, 1);
    c.start = array_random(DTYPE_F32, V * C, 1);
    c.dweight = array_of(DTYPE_F32, V * C, NAN);
    same_for_all_threads(run, &c);
    reference(&c);
    for (int64_t i = 0; i < N * C; i++) assert_true(array_get(&c.out, i) == c.out.exact[i]);
    array_check("dweight", &c.dweight, 1e-6, 1e-5);
    check_gradient("weight", c.weight.exact, c.dweight.exact, V * C, loss, &c);
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t rows[] = {1, 7, 129}, widths[] = {10, 64, 100, 768};
    for (int n = 0; n < 3; n++)
        for (int w = 0; w < 4; w++) {
            check_size(kernels, rows[n], widths[w], 1); /* every token the same */
            check_size(kernels, rows[n], widths[w], 13);
        }
}

static void test_embedding(void **state) {
    (void)state;
    for_each_instance(check);
}

static void check_none(const CpuKernels *kernels) {
    Array weight = array_random(kernels->storage, 3 * 37, 1);
    Array out = array_of(kernels->storage, 3 * 37, NAN);
    const int32_t tokens[] = {-1, 2, -1};
    kernels->embedding_forward(out.data, tokens, weight.data, 3, 37);
    for (int i = 0; i < 3 * 37; i++)
        assert_true(array_get(&out, i) == (i / 37 == 1 ? weight.exact[37 + i] : 0));
    release_arrays();
}

static void test_none(void **state) {
    (void)state;
    for_each_instance(check_none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
