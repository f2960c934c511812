/* Smear: a token takes over a gated share of the one before it (what it computes is said at SmearShape). */
#include "cuda/blocks.h"
#include "reduce.cuh"
#include "vectors.cuh"

/* out[n] = x[n] + lambda gates[n] previous[n], a token to a block; without `previous` that is the row of x
 * before, and none where a row of T begins. */
template <class S>
DEVICE void smear_forward(S *out, const S *x, const float *gates, const float *lambda,
                          const S *previous, int64_t T, int64_t C) {
    const int64_t n = blockIdx.x;
    const bool is_first = !previous && n % T == 0;
    const S *before = previous ? previous + n * C : x + (n - 1) * C;
    const float share = *lambda * gates[n];
    for (int64_t c = threadIdx.x * LANES<S>; c < C; c += blockDim.x * LANES<S>) {
        float own[LANES<S>], other[LANES<S>];
        load(own, x + n * C + c, C - c);
        load(other, before + c, is_first ? 0 : C - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) own[i] += share * other[i];
        store(out + n * C + c, own, C - c);
    }
}

/* dx[n] = dout[n] + share dout[n + 1], where share is 0 for a row's last token; returns this lane's part of
 * dout[n] . x[n - 1], which is 0 for its first. */
template <class S>
DEVICE float backward_token(S *dx, const S *dout, const S *x, float share, bool is_first,
                            bool is_last, int64_t C) {
    float product = 0;
    for (int64_t c = threadIdx.x % 32 * LANES<S>; c < C; c += 32 * LANES<S>) {
        float own[LANES<S>], after[LANES<S>], before[LANES<S>];
        load(own, dout + c, C - c);
        load(after, dout + C + c, is_last ? 0 : C - c);
        load(before, x - C + c, is_first ? 0 : C - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) {
            product += own[i] * before[i];
            own[i] += share * after[i];
        }
        store(dx + c, own, C - c);
    }
    return product;
}

/* A token to a warp at a time. With s[n] = dout[n] . x[n - 1]: dgates[n] = lambda s[n], and partials[block]
 * gets the block's part of dlambda, the sum of gates[n] s[n]. */
template <class S>
DEVICE void smear_backward(S *dx, float *dgates, double *partials, const S *dout, const S *x,
                           const float *gates, const float *lambda, int64_t N, int64_t T, int64_t C,
                           double (&sums)[WARPS_MOST]) {
    double dlambda = 0;
    for (int64_t n = (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / 32; n < N;
         n += (int64_t)gridDim.x * BLOCK_WARPS) {
        const bool is_first = n % T == 0, is_last = n % T == T - 1;
        const float share = is_last ? 0 : *lambda * gates[n + 1];
        const float product = warp_sum(
            backward_token(dx + n * C, dout + n * C, x + n * C, share, is_first, is_last, C));
        if (threadIdx.x % 32 == 0) {
            dgates[n] = *lambda * product;
            dlambda += (double)(gates[n] * product);
        }
    }
    dlambda = block_sum(dlambda, sums);
    if (threadIdx.x == 0) partials[blockIdx.x] = dlambda;
}

#define INSTANCE(suffix, S) \
    KERNEL(smear_forward_##suffix, BLOCK_THREADS) \
    (S * out, const S *x, const float *gates, const float *lambda, const S *previous, int64_t T, \
     int64_t C) { \
        smear_forward(out, x, gates, lambda, previous, T, C); \
    } \
    EXPORT_KERNEL(smear_forward_##suffix) \
    KERNEL(smear_backward_##suffix, BLOCK_THREADS) \
    (S * dx, float *dgates, double *partials, const S *dout, const S *x, const float *gates, \
     const float *lambda, int64_t N, int64_t T, int64_t C) { \
        __shared__ double sums[WARPS_MOST]; \
        smear_backward(dx, dgates, partials, dout, x, gates, lambda, N, T, C, sums); \
    } \
    EXPORT_KERNEL(smear_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
