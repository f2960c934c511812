#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    int64_t n;
    float *in;
    Array out;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->kernels->convert(c->out.data, c->in, c->n);
    return array_hash(0, &c->out);
}

static void check(const CpuKernels *kernels) {
    static const int64_t sizes[] = {1, 7, 16, 129, 100003};
    for (int s = 0; s < 5; s++) {
        Case c = {.kernels = kernels, .n = sizes[s]};
        c.in = keep((size_t)c.n * sizeof *c.in);
        c.out = array_of(kernels->storage, c.n, 0);
        for (int64_t i = 0; i < c.n;
             i++) { /* every kind of number: subnormal, infinite, NaN, ties */
            uint32_t bits = random_u32(3, 0, (uint64_t)i);
            if (i % 3 == 0) bits = (bits & 0xffff0000u) | 0x8000u;
            memcpy(&c.in[i], &bits, sizeof bits);
        }
        same_for_all_threads(run, &c);
        for (int64_t i = 0; i < c.n && kernels->storage == DTYPE_BF16; i++)
            assert_int_equal(((bf16 *)c.out.data)[i], bf16_from_float(c.in[i]));
        if (kernels->storage == DTYPE_F32)
            assert_memory_equal(c.out.data, c.in, array_bytes(&c.out));
        release_arrays();
    }
}

static void test_convert(void **state) {
    (void)state;
    for_each_instance(check);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_convert)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
