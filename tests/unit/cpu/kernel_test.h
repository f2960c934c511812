/* What the tests of kernels share: arrays held both as a kernel takes them and in double, and
 * loops over instances and thread counts.
 *
 * A test computes the expected result in double from exactly the numbers the kernel is given,
 * checks that reference's gradient by finite differences, and compares every instance with it.
 * So an instance differs from the portable one by at most twice the tolerance stated at the
 * comparison. Arrays are allocated at their exact sizes, for the address sanitizer. */
#ifndef HEARTH_TESTS_KERNEL_TEST_H
#define HEARTH_TESTS_KERNEL_TEST_H

#include "support.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cpu/kernels.h"

typedef struct Array {
    Dtype dtype;
    int64_t count;
    void *data;    /* for the kernel */
    double *exact; /* an input's values, or what an output should hold */
} Array;

enum { ARRAYS = 64 };
static void *kept[ARRAYS];
static int kept_count;
static uint64_t draws;

static inline void *keep(size_t size) {
    void *memory = malloc(size);
    if (!memory || kept_count == ARRAYS) abort();
    return kept[kept_count++] = memory;
}

static inline void release_arrays(void) {
    while (kept_count) free(kept[--kept_count]);
    draws = 0;
}

static inline double array_get(const Array *array, int64_t i) {
    if (array->dtype == DTYPE_BF16) return (double)bf16_to_float(((const bf16 *)array->data)[i]);
    return (double)((const float *)array->data)[i];
}

static inline void array_set(Array *array, int64_t i, double value) {
    if (array->dtype == DTYPE_BF16)
        ((bf16 *)array->data)[i] = bf16_from_float((float)value);
    else
        ((float *)array->data)[i] = (float)value;
    array->exact[i] = array_get(array, i);
}

/* Every element `value`, as far as the type can hold it. */
static inline Array array_of(Dtype dtype, int64_t count, double value) {
    Array array = {dtype, count, keep((size_t)(count * dtype_size(dtype))),
                   keep((size_t)count * sizeof(double))};
    for (int64_t i = 0; i < count; i++) array_set(&array, i, value);
    return array;
}

/* Normal numbers of the given deviation; the same sequence after each release_arrays(). */
static inline Array array_random(Dtype dtype, int64_t count, double deviation) {
    Array array = array_of(dtype, count, 0);
    for (int64_t i = 0; i < count; i++)
        array_set(&array, i, deviation * (double)random_normal(7, 0, draws++));
    return array;
}

static inline int32_t *tokens_random(int64_t count, int64_t bound) {
    int32_t *tokens = keep((size_t)count * sizeof *tokens);
    for (int64_t i = 0; i < count; i++)
        tokens[i] = (int32_t)random_below(7, 1, draws++, (uint64_t)bound);
    return tokens;
}

static inline size_t array_bytes(const Array *array) {
    return (size_t)(array->count * dtype_size(array->dtype));
}

/* The working weights are the masters, rounded where they are bf16. */
static inline void array_check_working(const Array *working, const Array *master) {
    for (int64_t i = 0; i < working->count; i++) {
        float value = ((const float *)master->data)[i];
        if (working->dtype == DTYPE_BF16) value = bf16_to_float(bf16_from_float(value));
        assert_true(array_get(working, i) == (double)value);
    }
}

/* |data - exact| <= relative * |exact| + absolute; bf16's own rounding (2^-8) comes on top. */
static inline void array_check(const char *name, const Array *array, double relative,
                               double absolute) {
    if (array->dtype == DTYPE_BF16) relative += 0x1p-8;
    for (int64_t i = 0; i < array->count; i++) {
        double got = array_get(array, i), want = array->exact[i];
        if (!(fabs(got - want) <= relative * fabs(want) + absolute))
            fail_msg("%s[%lld of %lld] is %.9g, not %.9g", name, (long long)i,
                     (long long)array->count, got, want);
    }
}

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return hash;
}

static inline uint64_t array_hash(uint64_t hash, const Array *array) {
    return hash_bytes(hash, array->data, array_bytes(array));
}

/* Calls run(context), which gives a hash of its outputs, with 1, 2 and 3 threads: the bits must
 * agree. */
static inline uint64_t same_for_all_threads(uint64_t (*run)(void *), void *context) {
    uint64_t first = 0;
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        uint64_t hash = run(context);
        if (threads == 1) first = hash;
        if (hash != first) fail_msg("%d threads give other bits than one", threads);
    }
    return first;
}

/* Calls check(kernels) for every instance that runs here, fp32 storage and bf16. */
static inline void for_each_instance(void (*check)(const CpuKernels *)) {
    static const char *const isas[] = {"portable", "avx2", "avx512", "avx512bf16", "neon"};
    Error error;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        setenv("HEARTH_ISA", isas[i], 1);
        for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
            const CpuKernels *kernels = cpu_kernels(storage, &error);
            if (kernels) check(kernels);
        }
    }
    unsetenv("HEARTH_ISA");
}

/* Compares gradient[count] with central differences of loss(context) in x, at about 16 places. */
static inline void check_gradient(const char *name, double *x, const double *gradient,
                                  int64_t count, double (*loss)(void *), void *context) {
    for (int64_t i = 0; i < count; i += count / 16 + 1) {
        double saved = x[i], h = 1e-5 * (1 + fabs(saved));
        x[i] = saved + h;
        double above = loss(context);
        x[i] = saved - h;
        double difference = (above - loss(context)) / (2 * h);
        x[i] = saved;
        if (!(fabs(difference - gradient[i]) <= 1e-5 * (1 + fabs(difference))))
            fail_msg("%s[%lld]: the reference's gradient is %.9g, its difference quotient %.9g",
                     name, (long long)i, gradient[i], difference);
    }
}

static inline double inner_product(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

#endif
