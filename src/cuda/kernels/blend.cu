/* A sum of two tensors with factors that are learned (what it computes is said at BlendShape). */
#include "cuda/blocks.h"
#include "reduce.cuh"
#include "step/operation.h"
#include "vectors.cuh"

DEVICE float factor_of(const float *factor) {
    return factor ? *factor : 1;
}

/* out = a x + sign b y, 16 bytes to a thread; out may be x or y. */
template <class S>
DEVICE void blend_forward(S *out, const S *x, const S *y, const float *a, const float *b,
                          BlendShape shape) {
    const int64_t at = ((int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x) * LANES<S>;
    const float of_x = factor_of(a), of_y = shape.sign * factor_of(b);
    float first[LANES<S>], second[LANES<S>];
    load(first, x + at, shape.n - at);
    load(second, y + at, shape.n - at);
#pragma unroll
    for (int i = 0; i < LANES<S>; i++) first[i] = of_x * first[i] + of_y * second[i];
    store(out + at, first, shape.n - at);
}

template <int L> DEVICE float dot(const float (&x)[L], const float (&y)[L]) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < L; i++) sum += x[i] * y[i];
    return sum;
}

/* What blend_backward() reads and writes besides sums. dy_addend may be null, or dy; dx may be dout. */
template <class S> struct BlendGradients {
    S *dx, *dy;
    const S *dout, *x, *y, *dy_addend;
};

/* dx = a dout, dy = sign b dout + dy_addend. partials[2,blocks] get the block's parts of sign sum(dout y)
 * and, if there is an `a`, of sum(dout x): the products of 16 bytes are added in fp32, their sums in
 * double. */
template <class S>
DEVICE void blend_backward(const BlendGradients<S> &tensors, double *partials, const float *a,
                           const float *b, BlendShape shape, double (&sums)[WARPS_MOST]) {
    const float of_x = factor_of(a), of_y = shape.sign * factor_of(b);
    const S *addend = tensors.dy_addend;
    double da = 0, db = 0;
    for (int64_t at = ((int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x) * LANES<S>; at < shape.n;
         at += (int64_t)gridDim.x * BLOCK_THREADS * LANES<S>) {
        const int64_t count = shape.n - at;
        float above[LANES<S>], x[LANES<S>], y[LANES<S>], dy[LANES<S>];
        load(above, tensors.dout + at, count);
        load(x, tensors.x + at, a ? count : 0);
        load(y, tensors.y + at, count);
        load(dy, addend ? addend + at : tensors.y + at, addend ? count : 0);
        da += (double)dot(above, x);
        db += (double)dot(above, y);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) {
            dy[i] += of_y * above[i];
            above[i] *= of_x;
        }
        store(tensors.dx + at, above, count);
        store(tensors.dy + at, dy, count);
    }
    da = block_sum(da, sums);
    db = block_sum(db, sums);
    if (threadIdx.x > 0) return;
    partials[blockIdx.x] = shape.sign * db;
    if (a) partials[gridDim.x + blockIdx.x] = da;
}

#define INSTANCE(suffix, S) \
    KERNEL(blend_forward_##suffix, BLOCK_THREADS) \
    (S * out, const S *x, const S *y, const float *a, const float *b, BlendShape shape) { \
        blend_forward(out, x, y, a, b, shape); \
    } \
    EXPORT_KERNEL(blend_forward_##suffix) \
    KERNEL(blend_backward_##suffix, BLOCK_THREADS) \
    (S * dx, S * dy, double *partials, const S *dout, const S *x, const S *y, const float *a, \
     const float *b, const S *dy_addend, BlendShape shape) { \
        __shared__ double sums[WARPS_MOST]; \
        const BlendGradients<S> tensors = {dx, dy, dout, x, y, dy_addend}; \
        blend_backward(tensors, partials, a, b, shape, sums); \
    } \
    EXPORT_KERNEL(blend_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
