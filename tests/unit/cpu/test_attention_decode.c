/* Attention for generation gives what the forward gives, token by token, in pieces and in branches. */
#include "attention_case.h"

#include <omp.h>

/* Decodes the case's T tokens in pieces of `piece` and compares each output row with the forward's.
 */
static void check_decode(const CpuKernels *kernels, const AttentionCase *c, int64_t piece) {
    const AttentionShape shape = c->shape;
    const int64_t D = shape.D, stride = (shape.H + 2 * shape.KV) * D, width = shape.H * D;
    const int64_t size = dtype_size(c->storage);
    AttentionValues v = attention_values(c);
    AttentionResult result = attention_run(kernels, c, &v);
    char *qkv = to_storage(v.qkv, v.qkv_count, c->storage);
    char *out = must((size_t)(shape.T * width), (size_t)size);
    void *keys = must((size_t)(shape.T * shape.KV * D), (size_t)size);
    void *values = must((size_t)(shape.T * shape.KV * D), (size_t)size);
    for (int64_t position = 0; position < shape.T; position += piece) {
        AttentionShape part = shape;
        part.T = position + piece < shape.T ? piece : shape.T - position;
        kernels->attention_decode(out + position * width * size, qkv + position * stride * size,
                                  NULL, keys, values, position, part);
    }
    const double tolerance = c->storage == DTYPE_BF16 ? 0.02 : 3e-6;
    for (int64_t i = 0; i < v.out_count; i++) {
        double actual = from_storage(out, i, c->storage),
               wanted = from_storage(result.out, i, c->storage);
        if (!(fabs(actual - wanted) <= tolerance * (1 + fabs(wanted))))
            fail_msg("%s %s D=%d window=%d: %g, not %g, at %d", kernels->isa,
                     dtype_name(c->storage), (int)D, (int)shape.window, actual, wanted, (int)i);
    }
    free(qkv), free(out), free(keys), free(values);
    attention_result_free(&result);
    attention_values_free(&v);
}

static void test_decode_is_forward(void **state) {
    (void)state;
    const int64_t dims[] = {64, 112, 10}, windows[] = {-1, 0, 40}, pieces[] = {1, 33};
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < ATTENTION_ISAS; i++) {
            const CpuKernels *kernels = attention_kernels(attention_isas[i], (Dtype)storage);
            for (int j = 0; kernels && j < 18; j++) {
                AttentionCase c = {
                    {1, 100, 4, 2, dims[j % 3], windows[j / 3 % 3], 0.1f}, (Dtype)storage, 0, 1};
                check_decode(kernels, &c, pieces[j / 9]);
            }
        }
}

/* A row of branches of these lengths behind cached tokens. */
enum { BRANCHES = 4, NEW = 3 + 1 + 70 + 9, PADDING = 5 };
static const int64_t branch_lengths[BRANCHES] = {3, 1, 70, 9};

typedef struct Branches {
    const AttentionCase *c; /* shape.T: the cached tokens and the new ones */
    int64_t position, size, stride, row, width;
    char *qkv, *out, *keys, *values; /* the caches have PADDING places more than are written */
} Branches;

/* Fills the caches, then runs the row of branches. */
static void decode_branches(const CpuKernels *kernels, Branches *b) {
    AttentionShape shape = b->c->shape;
    const size_t cache = (size_t)((shape.T + PADDING) * b->row * b->size);
    memset(b->keys, 0xff, cache), memset(b->values, 0xff, cache); /* NaN */
    shape.T = b->position;
    kernels->attention_decode(b->out, b->qkv, NULL, b->keys, b->values, 0, shape);
    int32_t starts[NEW], start = 0;
    for (int branch = 0; branch < BRANCHES; branch++) {
        for (int64_t t = 0; t < branch_lengths[branch]; t++) starts[start + t] = start;
        start += (int32_t)branch_lengths[branch];
    }
    shape.T = NEW;
    kernels->attention_decode(b->out, b->qkv + b->position * b->stride * b->size, starts, b->keys,
                              b->values, b->position, shape);
}

/* Attention over the cached tokens and those of the branch, as one sequence. */
static void check_branch(const Branches *b, const AttentionValues *all, int64_t start,
                         int64_t length) {
    AttentionCase alone = *b->c;
    alone.shape.T = b->position + length;
    AttentionValues v = attention_values(&alone);
    memcpy(v.qkv, all->qkv, (size_t)(b->position * b->stride) * sizeof *v.qkv);
    memcpy(v.qkv + b->position * b->stride, all->qkv + (b->position + start) * b->stride,
           (size_t)(length * b->stride) * sizeof *v.qkv);
    reference(&alone, &v);
    const double tolerance = alone.storage == DTYPE_BF16 ? 0.02 : 3e-6;
    for (int64_t i = 0; i < length * b->width; i++) {
        double actual = from_storage(b->out, start * b->width + i, alone.storage),
               wanted = v.out[b->position * b->width + i];
        if (!(fabs(actual - wanted) <= tolerance * (1 + fabs(wanted))))
            fail_msg("position %d window %d branch at %d: %g, not %g, at %d", (int)b->position,
                     (int)alone.shape.window, (int)start, actual, wanted, (int)i);
    }
    attention_values_free(&v);
}

/* The first branch is in the caches, and nothing behind it. */
static void check_caches(const Branches *b) {
    const AttentionShape *shape = &b->c->shape;
    const int64_t row = b->row * b->size, seen = b->position + branch_lengths[0];
    for (int64_t t = 0; t < seen; t++) {
        const char *keys = b->qkv + (t * b->stride + shape->H * shape->D) * b->size;
        assert_memory_equal(b->keys + t * row, keys, (size_t)row);
        assert_memory_equal(b->values + t * row, keys + row, (size_t)row);
    }
    for (int64_t i = seen * row; i < (shape->T + PADDING) * row; i++)
        assert_true((uint8_t)b->keys[i] == 0xff && (uint8_t)b->values[i] == 0xff);
}

static void check_branches(const CpuKernels *kernels, const AttentionCase *c, int64_t position) {
    const AttentionShape shape = c->shape;
    Branches b = {.c = c,
                  .position = position,
                  .size = dtype_size(c->storage),
                  .stride = (shape.H + 2 * shape.KV) * shape.D,
                  .row = shape.KV * shape.D,
                  .width = shape.H * shape.D};
    AttentionValues v = attention_values(c);
    const size_t out_bytes = (size_t)(v.out_count * b.size);
    b.qkv = to_storage(v.qkv, v.qkv_count, c->storage);
    b.out = must(out_bytes, 1);
    b.keys = must((size_t)((shape.T + PADDING) * b.row), (size_t)b.size);
    b.values = must((size_t)((shape.T + PADDING) * b.row), (size_t)b.size);
    char *first = must(out_bytes, 1);
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        decode_branches(kernels, &b);
        if (threads == 1) memcpy(first, b.out, out_bytes);
        assert_memory_equal(first, b.out, out_bytes);
    }
    for (int64_t branch = 0, start = 0; branch < BRANCHES; start += branch_lengths[branch++])
        check_branch(&b, &v, start, branch_lengths[branch]);
    check_caches(&b);
    free(b.qkv), free(b.out), free(b.keys), free(b.values), free(first);
    attention_values_free(&v);
}

/* Windows that end in the branch, reach partly into the cache, and beyond its beginning. */
static void test_branches(void **state) {
    (void)state;
    const int64_t windows[] = {-1, 2, 30, 100}, positions[] = {0, 70};
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < ATTENTION_ISAS; i++) {
            const CpuKernels *kernels = attention_kernels(attention_isas[i], (Dtype)storage);
            for (int j = 0; kernels && j < 8; j++) {
                const int64_t position = positions[j / 4], D = j % 2 ? 64 : 10;
                AttentionCase c = {
                    {1, position + NEW, 4, 2, D, windows[j % 4], 0.1f}, (Dtype)storage, 0, 1};
                check_branches(kernels, &c, position);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_is_forward),
        cmocka_unit_test(test_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
