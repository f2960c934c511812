/* RMSNorm (Zhang and Sennrich, arXiv 1910.07467): y = w x r, r = 1/sqrt(mean(x^2) + eps). */
#include "cuda/blocks.h"
#include "reduce.cuh"
#include "vectors.cuh"

/* The weight's numbers from c on, or ones where there is none. */
template <class S>
DEVICE void load_weight(float (&factor)[LANES<S>], const S *weight, int64_t c, int64_t C) {
    if (weight) {
        load(factor, weight + c, C - c);
    } else {
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) factor[i] = 1;
    }
}

/* A row to a warp, read twice: the second time it is still in the cache. */
template <class S>
DEVICE void rmsnorm_forward(S *out, float *rstd, const S *x, const S *weight, int64_t N, int64_t C,
                            float eps) {
    const int64_t n = (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    if (n >= N) return;
    const int64_t first = threadIdx.x % 32 * LANES<S>, step = 32 * LANES<S>;
    float squares = 0;
    for (int64_t c = first; c < C; c += step) {
        float value[LANES<S>];
        load(value, x + n * C + c, C - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) squares += value[i] * value[i];
    }
    const float scale = 1 / sqrtf(warp_sum(squares) / (float)C + eps);
    if (threadIdx.x % 32 == 0) rstd[n] = scale;
    for (int64_t c = first; c < C; c += step) {
        float value[LANES<S>], factor[LANES<S>];
        load(value, x + n * C + c, C - c);
        load_weight(factor, weight, c, C);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) value[i] *= scale * factor[i];
        store(out + n * C + c, value, C - c);
    }
}

/* What a thread of the backward works on: columns first, first + step, .. of every row of its block. */
typedef struct Columns {
    int64_t first, step, C;
} Columns;

/* With s = sum(dy w x): dx = r (dy w - x r^2 s / C), and a row adds dy x r to dw, of which each thread
 * sums its own columns, if there is a weight. dresidual may be null, or dx. */
template <class S>
DEVICE void backward_row(S *dx, float *dweight, const S *dout, const S *dresidual, const S *x,
                         float rstd, const S *weight, Columns columns, float (&sums)[WARPS_MOST]) {
    const int64_t C = columns.C;
    float products = 0;
    for (int64_t c = columns.first; c < C; c += columns.step) {
        float above[LANES<S>], value[LANES<S>], factor[LANES<S>], sum[LANES<S>] = {};
        load(above, dout + c, C - c);
        load(value, x + c, C - c);
        load_weight(factor, weight, c, C);
        if (weight) load(sum, dweight + c, C - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) {
            const float product = above[i] * value[i];
            products += product * factor[i];
            sum[i] += product * rstd;
        }
        if (weight) store(dweight + c, sum, C - c);
    }
    const float along_x = rstd * rstd * block_sum(products, sums) / (float)C;
    for (int64_t c = columns.first; c < C; c += columns.step) {
        float above[LANES<S>], value[LANES<S>], factor[LANES<S>], result[LANES<S>];
        load(above, dout + c, C - c);
        load(value, x + c, C - c);
        load_weight(factor, weight, c, C);
        load(result, dresidual ? dresidual + c : x + c, dresidual ? C - c : 0);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++)
            result[i] += (above[i] * factor[i] - along_x * value[i]) * rstd;
        store(dx + c, result, C - c);
    }
}

/* Rows block, block + blocks, ..: their part of the weight's gradient goes to partials[block,C]. dweight
 * [C] is shared memory. Without a weight there is neither. */
template <class S>
DEVICE void rmsnorm_backward(S *dx, float *partials, const S *dout, const S *dresidual, const S *x,
                             const float *rstd, const S *weight, int64_t N, int64_t C,
                             float *dweight, float (&sums)[WARPS_MOST]) {
    const Columns columns = {threadIdx.x * LANES<S>, blockDim.x * LANES<S>, C};
    const float zeros[LANES<S>] = {};
    for (int64_t c = columns.first; weight && c < C; c += columns.step)
        store(dweight + c, zeros, C - c);
    for (int64_t n = blockIdx.x; n < N; n += gridDim.x)
        backward_row(dx + n * C, dweight, dout + n * C, dresidual ? dresidual + n * C : nullptr,
                     x + n * C, rstd[n], weight, columns, sums);
    for (int64_t c = columns.first; weight && c < C; c += columns.step) {
        float sum[LANES<S>];
        load(sum, dweight + c, C - c);
        store(partials + blockIdx.x * C + c, sum, C - c);
    }
}

#define INSTANCE(suffix, S) \
    KERNEL(rmsnorm_forward_##suffix, BLOCK_THREADS) \
    (S * out, float *rstd, const S *x, const S *weight, int64_t N, int64_t C, float eps) { \
        rmsnorm_forward(out, rstd, x, weight, N, C, eps); \
    } \
    EXPORT_KERNEL(rmsnorm_forward_##suffix) \
    KERNEL(rmsnorm_backward_##suffix, BLOCK_THREADS) \
    (S * dx, float *partials, const S *dout, const S *dresidual, const S *x, const float *rstd, \
     const S *weight, int64_t N, int64_t C) { \
        DYNAMIC_SHARED(float, dweight); \
        __shared__ float sums[WARPS_MOST]; \
        rmsnorm_backward(dx, partials, dout, dresidual, x, rstd, weight, N, C, dweight, sums); \
    } \
    EXPORT_KERNEL(rmsnorm_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)

/* dweight[C] += the sum of partials[count,C]: 32 columns to a block, one to a lane; each of its warps sums
 * every 32nd row. */
KERNEL(rmsnorm_backward_weight, COLUMN_SUMS_THREADS)
(float *dweight, const float *partials, int64_t count, int64_t C) {
    __shared__ float sums[32][32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = (int64_t)blockIdx.x * COLUMN_SUMS + lane;
    float sum = 0;
    if (c < C)
        for (int64_t row = warp; row < count; row += 32) sum += partials[row * C + c];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || c >= C) return;
    for (int i = 1; i < 32; i++) sum += sums[i][lane];
    dweight[c] += sum;
}
EXPORT_KERNEL(rmsnorm_backward_weight)
