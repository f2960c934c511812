/* One set of inputs for attention, and what double precision makes of it by the definition. */
#ifndef HEARTH_TESTS_ATTENTION_CASE_H
#define HEARTH_TESTS_ATTENTION_CASE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cpu/kernels.h"
#include "support.h"

static const char *const attention_isas[] = {"portable", "avx2", "avx512", "avx512bf16", "neon"};
enum { ATTENTION_ISAS = sizeof attention_isas / sizeof *attention_isas };

typedef struct AttentionCase {
    AttentionShape shape;
    Dtype storage;
    int64_t documents; /* every how many tokens a document starts; 0: no boundaries */
    float magnitude;   /* of the inputs */
} AttentionCase;

/* Values as doubles, rounded to the storage type where the kernel's are. */
typedef struct AttentionValues {
    double *qkv, *dout, *out, *lse, *dqkv;
    int32_t *document_start;
    int64_t qkv_count, out_count, lse_count;
} AttentionValues;

static inline void *must(size_t count, size_t size) {
    void *memory = calloc(count, size);
    assert_non_null(memory);
    return memory;
}

static inline double rounded(double x, Dtype storage) {
    return storage == DTYPE_BF16 ? (double)bf16_to_float(bf16_from_float((float)x))
                                 : (double)(float)x;
}

/* A storage copy of values, to be freed. */
static inline void *to_storage(const double *values, int64_t count, Dtype storage) {
    char *copy = must((size_t)count, (size_t)dtype_size(storage));
    for (int64_t i = 0; i < count; i++) {
        float value = (float)values[i];
        bf16 half = bf16_from_float(value);
        memcpy(copy + i * dtype_size(storage),
               storage == DTYPE_BF16 ? (void *)&half : (void *)&value, (size_t)dtype_size(storage));
    }
    return copy;
}

static inline double from_storage(const void *values, int64_t i, Dtype storage) {
    return storage == DTYPE_BF16 ? (double)bf16_to_float(((const bf16 *)values)[i])
                                 : (double)((const float *)values)[i];
}

static inline int64_t lowest_key(const AttentionCase *c, const int32_t *document_start, int64_t t) {
    int64_t lowest = document_start ? document_start[t] : 0;
    if (c->shape.window >= 0 && t - c->shape.window > lowest) lowest = t - c->shape.window;
    return lowest;
}

/* weights[s] of query t, and the log of the sum of exponentials */
static inline double reference_weights(const AttentionCase *c, const double *q, const double *k,
                                       int64_t stride, int64_t lowest, int64_t t, double *weights) {
    double largest = -INFINITY, sum = 0;
    for (int64_t s = lowest; s <= t; s++) {
        double dot = 0;
        for (int64_t d = 0; d < c->shape.D; d++) dot += q[t * stride + d] * k[s * stride + d];
        weights[s] = dot * (double)c->shape.scale;
        largest = fmax(largest, weights[s]);
    }
    for (int64_t s = lowest; s <= t; s++) sum += weights[s] = exp(weights[s] - largest);
    for (int64_t s = lowest; s <= t; s++) weights[s] /= sum;
    return largest + log(sum);
}

/* One query head of one row: out, lse, and the gradients added to dqkv. */
static inline void reference_head(const AttentionCase *c, AttentionValues *v, int64_t b,
                                  int64_t h) {
    const AttentionShape shape = c->shape;
    const int64_t D = shape.D, stride = (shape.H + 2 * shape.KV) * D, width = shape.H * D;
    const int64_t kv = h / (shape.H / shape.KV), row = b * shape.T * stride;
    const int64_t qo = row + h * D, ko = row + (shape.H + kv) * D, vo = ko + shape.KV * D;
    double *weights = must((size_t)shape.T, sizeof *weights);
    for (int64_t t = 0; t < shape.T; t++) {
        const int32_t *starts = v->document_start ? v->document_start + b * shape.T : NULL;
        const int64_t lowest = lowest_key(c, starts, t);
        v->lse[(b * shape.H + h) * shape.T + t] =
            reference_weights(c, v->qkv + qo, v->qkv + ko, stride, lowest, t, weights);
        double *out = v->out + (b * shape.T + t) * width + h * D;
        const double *dout = v->dout + (b * shape.T + t) * width + h * D;
        double delta = 0;
        for (int64_t s = lowest; s <= t; s++)
            for (int64_t d = 0; d < D; d++) out[d] += weights[s] * v->qkv[vo + s * stride + d];
        for (int64_t d = 0; d < D; d++) delta += out[d] * dout[d];
        for (int64_t s = lowest; s <= t; s++) {
            double dweight = 0;
            for (int64_t d = 0; d < D; d++) dweight += dout[d] * v->qkv[vo + s * stride + d];
            double dscore = weights[s] * (dweight - delta) * (double)shape.scale;
            for (int64_t d = 0; d < D; d++) {
                v->dqkv[vo + s * stride + d] += weights[s] * dout[d];
                v->dqkv[ko + s * stride + d] += dscore * v->qkv[qo + t * stride + d];
                v->dqkv[qo + t * stride + d] += dscore * v->qkv[ko + s * stride + d];
            }
        }
    }
    free(weights);
}

static inline void reference(const AttentionCase *c, AttentionValues *v) {
    memset(v->out, 0, (size_t)v->out_count * sizeof *v->out);
    memset(v->dqkv, 0, (size_t)v->qkv_count * sizeof *v->dqkv);
    for (int64_t b = 0; b < c->shape.B; b++)
        for (int64_t h = 0; h < c->shape.H; h++) reference_head(c, v, b, h);
}

static inline AttentionValues attention_values(const AttentionCase *c) {
    const AttentionShape shape = c->shape;
    const int64_t N = shape.B * shape.T;
    AttentionValues v = {.qkv_count = N * (shape.H + 2 * shape.KV) * shape.D,
                         .out_count = N * shape.H * shape.D,
                         .lse_count = N * shape.H};
    v.qkv = must((size_t)v.qkv_count, sizeof *v.qkv);
    v.dqkv = must((size_t)v.qkv_count, sizeof *v.dqkv);
    v.out = must((size_t)v.out_count, sizeof *v.out);
    v.dout = must((size_t)v.out_count, sizeof *v.dout);
    v.lse = must((size_t)v.lse_count, sizeof *v.lse);
    for (int64_t i = 0; i < v.qkv_count; i++)
        v.qkv[i] = rounded((double)(c->magnitude * random_normal(1, 0, (uint64_t)i)), c->storage);
    for (int64_t i = 0; i < v.out_count; i++)
        v.dout[i] = rounded((double)random_normal(2, 0, (uint64_t)i), c->storage);
    if (c->documents) {
        v.document_start = must((size_t)N, sizeof *v.document_start);
        for (int64_t i = 0; i < N; i++)
            v.document_start[i] = (int32_t)(i % shape.T / c->documents * c->documents);
    }
    return v;
}

static inline void attention_values_free(AttentionValues *v) {
    free(v->qkv), free(v->dqkv), free(v->out), free(v->dout), free(v->lse), free(v->document_start);
}

/* What a kernel made of a case, in its storage type. */
typedef struct AttentionResult {
    void *out, *dqkv;
    float *lse;
} AttentionResult;

static inline void *aligned_workspace(size_t bytes) {
    void *workspace = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    assert_non_null(workspace);
    memset(workspace, 0xff, bytes); /* NaN: nothing may rely on what is there */
    return workspace;
}

static inline AttentionResult attention_run(const CpuKernels *kernels, const AttentionCase *c,
                                            const AttentionValues *v) {
    void *qkv = to_storage(v->qkv, v->qkv_count, c->storage);
    void *dout = to_storage(v->dout, v->out_count, c->storage);
    void *workspace = aligned_workspace(kernels->attention_workspace(c->shape));
    AttentionResult result = {
        .out = aligned_workspace((size_t)(v->out_count * dtype_size(c->storage))),
        .dqkv = aligned_workspace((size_t)(v->qkv_count * dtype_size(c->storage))),
        .lse = must((size_t)v->lse_count, sizeof(float)),
    };
    kernels->attention_forward(result.out, result.lse, qkv, v->document_start, workspace, c->shape);
    kernels->attention_backward(result.dqkv, dout, result.out, result.lse, qkv, v->document_start,
                                workspace, c->shape);
    free(qkv), free(dout), free(workspace);
    return result;
}

static inline void attention_result_free(AttentionResult *result) {
    free(result->out), free(result->dqkv), free(result->lse);
}

/* The instance, or NULL where it cannot run. */
static inline const CpuKernels *attention_kernels(const char *isa, Dtype storage) {
    Error error;
    setenv("HEARTH_ISA", isa, 1);
    const CpuKernels *kernels = cpu_kernels(storage, &error);
    unsetenv("HEARTH_ISA");
    return kernels;
}

#endif
