/* The beginning of Muon's update (cpu/kernels.h says what it computes). Between its kernels the matrix X lies
 * in fp32 where the gradient was. Compiled without fused multiply-add: the momentum has the CPU's bits. */
#include "base/random.h"
#include "clipping.cuh"
#include "cuda/blocks.h"
#include "cuda/scalars.h"
#include "reduce.cuh"
#include "step/operation.h"
#include "vectors.cuh"

/* Rounds as numeric/state.h's STATE_BF16; index: of the first number among those of all steps. */
DEVICE void round_four(float (&m)[4], uint64_t seed, uint32_t tensor, uint64_t index) {
    const PhiloxWords words = philox(seed, random_stream(RANDOM_ROUND, tensor), index / 4);
#pragma unroll
    for (int i = 0; i < 4; i++) m[i] = bf16_to_float(bf16_stochastic(m[i], words.word[i]));
}

/* The momentum and X of a row, for each block, and squares[row], the row's sum of squares. Numbers are taken
 * in fours from a multiple of four of the matrix, as random numbers are drawn, wherever the row begins. */
template <class M>
DEVICE void momentum_row(float *gradient, M *momentum, float *squares, float norm,
                         const CudaScalars &scalars, const MuonShape &shape,
                         float (&sums)[WARPS_MOST]) {
    const int64_t begin = blockIdx.x * shape.columns, end = begin + shape.columns;
    const float mu = scalars.momentum, rest = 1 - mu;
    const float scale = clipped_scale(scalars.gradient_scale, norm, shape.clip_norm);
    float sum = 0;
    for (int64_t at = begin / 4 * 4 + threadIdx.x * 4; at < end; at += blockDim.x * 4) {
        float x[4] = {}, m[4];
        if (!is_dropped(norm)) {
            load_between(x, gradient + at, begin - at, end - at, 0.0f);
            load_between(m, momentum + at, begin - at, end - at, 0.0f);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float g = x[i] * scale;
                m[i] = m[i] * mu + g * rest;
                x[i] = g * rest + m[i] * mu;
                sum += x[i] * x[i];
            }
            /* 2^40 numbers before the next step's */
            const uint64_t index = ((uint64_t)scalars.step << 40) + (uint64_t)at;
            if (sizeof(M) == 2) round_four(m, scalars.seed, shape.tensor, index);
            store_between(momentum + at, m, begin - at, end - at);
        }
        store_between(gradient + at, x, begin - at, end - at);
    }
    sum = block_sum(sum, sums);
    if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

/* muon_momentum32 and muon_momentum16, by the bits of the momentum */
#define MOMENTUM_INSTANCE(bits, M) \
    KERNEL(muon_momentum##bits, BLOCK_THREADS) \
    (float *gradient, M *momentum, float *squares, const float *norm, const CudaScalars *scalars, \
     MuonShape shape) { \
        __shared__ float sums[WARPS_MOST]; \
        momentum_row(gradient, momentum, squares, *norm, *scalars, shape, sums); \
    } \
    EXPORT_KERNEL(muon_momentum##bits)

MOMENTUM_INSTANCE(32, float)
MOMENTUM_INSTANCE(16, Bf16)

/* What rows are multiplied by takes the place of their squares[rows]: `target` over the row's norm gives all
 * rows one norm, and then X is divided by its own. One block. */
KERNEL(muon_begin_factors, WIDE_BLOCK_THREADS)(float *squares, int64_t rows) {
    __shared__ double sums[WARPS_MOST];
    double sum = 0;
    for (int64_t r = threadIdx.x; r < rows; r += WIDE_BLOCK_THREADS) sum += (double)squares[r];
    const float target = (float)sqrt(block_sum(sum, sums) / (double)rows);
    sum = 0;
    for (int64_t r = threadIdx.x; r < rows; r += WIDE_BLOCK_THREADS) {
        const float norm = sqrtf(squares[r]), factor = target / fmaxf(norm, 1e-6f);
        sum += (double)(factor * norm) * (double)(factor * norm);
        squares[r] = factor;
    }
    const float divisor = 1.01f * (float)sqrt(block_sum(sum, sums)) + 1e-6f;
    for (int64_t r = threadIdx.x; r < rows; r += WIDE_BLOCK_THREADS) squares[r] /= divisor;
}
EXPORT_KERNEL(muon_begin_factors)

/* update[rows,columns] = the rows of x times their factors, a row to a block; x is the gradient: zeroed. */
template <class S>
DEVICE void scale_rows(S *update, float *x, const float *factors, int64_t columns) {
    const float zeros[LANES<S>] = {}, factor = factors[blockIdx.x];
    float *from = x + blockIdx.x * columns;
    for (int64_t c = threadIdx.x * LANES<S>; c < columns; c += blockDim.x * LANES<S>) {
        float value[LANES<S>];
        load(value, from + c, columns - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) value[i] *= factor;
        store(update + blockIdx.x * columns + c, value, columns - c);
        store(from + c, zeros, columns - c);
    }
}

/* As scale_rows(), to update[columns,rows]: by tiles, so that neighbouring lanes read and write
 * neighbours. */
template <class S>
DEVICE void scale_rows_transposed(S *update, float *x, const float *factors, int64_t rows,
                                  int64_t columns, float (&tile)[MUON_TILE][MUON_TILE + 1]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t first_column = (int64_t)blockIdx.x * MUON_TILE;
    const int64_t first_row = (int64_t)blockIdx.y * MUON_TILE;
    for (int i = warp; i < MUON_TILE; i += BLOCK_WARPS) {
        const int64_t r = first_row + i, c = first_column + lane;
        if (r >= rows || c >= columns) continue;
        tile[i][lane] = x[r * columns + c] * factors[r];
        x[r * columns + c] = 0;
    }
    __syncthreads();
    for (int i = warp; i < MUON_TILE; i += BLOCK_WARPS) {
        const int64_t r = first_row + lane, c = first_column + i;
        if (r < rows && c < columns) from_float(update[c * rows + r], tile[lane][i]);
    }
}

#define SCALE_INSTANCE(suffix, S) \
    KERNEL(muon_scale_rows_##suffix, BLOCK_THREADS) \
    (S * update, float *x, const float *factors, int64_t columns) { \
        scale_rows(update, x, factors, columns); \
    } \
    EXPORT_KERNEL(muon_scale_rows_##suffix) \
    KERNEL(muon_scale_rows_transposed_##suffix, BLOCK_THREADS) \
    (S * update, float *x, const float *factors, int64_t rows, int64_t columns) { \
        __shared__ float tile[MUON_TILE][MUON_TILE + 1]; \
        scale_rows_transposed(update, x, factors, rows, columns, tile); \
    } \
    EXPORT_KERNEL(muon_scale_rows_transposed_##suffix)

SCALE_INSTANCE(bf16, Bf16)
SCALE_INSTANCE(fp32, float)
