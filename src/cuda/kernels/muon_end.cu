/* The end of Muon's update (cpu/kernels.h says what it computes). The update X is stored [m,n] with m <= n;
 * its numbers fall into groups of m, each with a variance: the columns as stored, or the rows of a square. */
#include "clipping.cuh"
#include "cuda/blocks.h"
#include "cuda/scalars.h"
#include "reduce.cuh"
#include "step/operation.h"
#include "vectors.cuh"

/* squares[m] of the rows of update[m,m], a row to a warp */
template <class S> DEVICE void square_rows(float *squares, const S *update, int64_t m) {
    const int64_t row = (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    if (row >= m) return;
    float sum = 0;
    for (int64_t c = threadIdx.x % 32 * LANES<S>; c < m; c += 32 * LANES<S>) {
        float x[LANES<S>];
        load(x, update + row * m + c, m - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) sum += x[i] * x[i];
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) squares[row] = sum;
}

/* Threads side by side that cover a block's columns, and rows that it works on at a time. */
template <class S> constexpr int ACROSS = MUON_COLUMNS / LANES<S>;
template <class S> constexpr int DOWN = WIDE_BLOCK_THREADS / ACROSS<S>;

/* squares[n] of the columns of update[m,n] */
template <class S>
DEVICE void square_columns(float *squares, const S *update, int64_t m, int64_t n,
                           float (&sums)[DOWN<S>][MUON_COLUMNS]) {
    const int across = threadIdx.x % ACROSS<S> * LANES<S>, down = threadIdx.x / ACROSS<S>;
    const int64_t first = (int64_t)blockIdx.x * MUON_COLUMNS, column = first + across;
    float sum[LANES<S>] = {};
    for (int64_t row = down; row < m; row += DOWN<S>) {
        float x[LANES<S>];
        load(x, update + row * n + column, n - column);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) sum[i] += x[i] * x[i];
    }
    store(&sums[down][across], sum, LANES<S>);
    __syncthreads();
    const int own = threadIdx.x;
    if (own >= MUON_COLUMNS || first + own >= n) return;
    float total = 0;
    for (int i = 0; i < DOWN<S>; i++) total += sums[i][own];
    squares[first + own] = total;
}

DEVICE float step_size(float variance) {
    return 1 / sqrtf(fmaxf(variance, 1e-10f));
}

/* The new variance[groups]; what the numbers of a group are multiplied by takes the place of their squares.
 * One block. */
KERNEL(muon_end_factors, WIDE_BLOCK_THREADS)
(float *squares, float *variance, const float *norm, int64_t groups, int64_t m, float beta2) {
    __shared__ double sums[WARPS_MOST];
    if (is_dropped(*norm)) return;
    double sum = 0;
    for (int64_t g = threadIdx.x; g < groups; g += WIDE_BLOCK_THREADS) sum += (double)squares[g];
    const float before = (float)sqrt(block_sum(sum, sums));
    const float scale =
        sqrtf((float)m) / fmaxf(before, 1e-6f); /* to the norm of an orthogonal matrix */
    sum = 0;
    for (int64_t g = threadIdx.x; g < groups; g += WIDE_BLOCK_THREADS) {
        const float scaled = scale * scale * squares[g];
        variance[g] = beta2 * variance[g] + (1 - beta2) * (scaled / (float)m);
        const float step = step_size(variance[g]);
        sum += (double)(scaled * step * step);
    }
    const float after = fmaxf((float)sqrt(block_sum(sum, sums)), 1e-10f);
    const float factor = scale * (scale * before / after);
    for (int64_t g = threadIdx.x; g < groups; g += WIDE_BLOCK_THREADS)
        squares[g] = factor * step_size(variance[g]);
}
EXPORT_KERNEL(muon_end_factors)

/* A step of the weights. Decay is for those that it and the update pull the same way. */
typedef struct Step {
    float rate, decay;
} Step;

DEVICE Step step_of(const CudaScalars &scalars, const MuonShape &shape) {
    const float rate = scalars.learning_rate * shape.rate;
    return {rate, rate * (scalars.weight_decay * shape.weight_decay)};
}

DEVICE float stepped(float weight, float x, Step step) {
    const float decay = x * weight >= 0 ? step.decay * weight : 0;
    return weight - (step.rate * x + decay);
}

/* The weights, and their copies in the storage type: `working` may be null or the master itself. */
template <class S> struct Weights {
    float *master;
    S *working;
};

template <class S> DEVICE bool has_working(const Weights<S> &weights) {
    return weights.working && (const void *)weights.working != weights.master;
}

/* Weights[m,n], a row to a block. factors: of the rows when m == n, else of the columns. */
template <class S>
DEVICE void update_rows(const Weights<S> &weights, const S *update, const float *factors, int64_t m,
                        int64_t n, Step step) {
    const int64_t row = blockIdx.x;
    for (int64_t c = threadIdx.x * LANES<S>; c < n; c += blockDim.x * LANES<S>) {
        float x[LANES<S>], weight[LANES<S>], factor[LANES<S>];
        load(x, update + row * n + c, n - c);
        load(weight, weights.master + row * n + c, n - c);
        if (m < n) load(factor, factors + c, n - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++)
            weight[i] = stepped(weight[i], x[i] * (m < n ? factor[i] : factors[row]), step);
        store(weights.master + row * n + c, weight, n - c);
        if (has_working(weights)) store(weights.working + row * n + c, weight, n - c);
    }
}

/* Weights[n,m], with update[m,n] transposed by tiles, so that neighbouring lanes read and write
 * neighbours. */
template <class S>
DEVICE void update_transposed(const Weights<S> &weights, const S *update, const float *factors,
                              int64_t m, int64_t n, Step step,
                              float (&tile)[MUON_TILE][MUON_TILE + 1]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t first_column = (int64_t)blockIdx.x * MUON_TILE; /* of the weights */
    const int64_t first_row = (int64_t)blockIdx.y * MUON_TILE;
    for (int i = warp; i < MUON_TILE; i += BLOCK_WARPS) {
        const int64_t r = first_row + lane, c = first_column + i;
        if (r < n && c < m) tile[i][lane] = to_float(update[c * n + r]) * factors[r];
    }
    __syncthreads();
    for (int i = warp; i < MUON_TILE; i += BLOCK_WARPS) {
        const int64_t r = first_row + i, c = first_column + lane;
        if (r >= n || c >= m) continue;
        const float weight = stepped(weights.master[r * m + c], tile[lane][i], step);
        weights.master[r * m + c] = weight;
        if (has_working(weights)) from_float(weights.working[r * m + c], weight);
    }
}

#define INSTANCE(suffix, S) \
    KERNEL(muon_square_rows_##suffix, BLOCK_THREADS) \
    (float *squares, const S *update, int64_t m) { \
        square_rows(squares, update, m); \
    } \
    EXPORT_KERNEL(muon_square_rows_##suffix) \
    KERNEL(muon_square_columns_##suffix, WIDE_BLOCK_THREADS) \
    (float *squares, const S *update, int64_t m, int64_t n) { \
        __shared__ float sums[DOWN<S>][MUON_COLUMNS]; \
        square_columns(squares, update, m, n, sums); \
    } \
    EXPORT_KERNEL(muon_square_columns_##suffix) \
    KERNEL(muon_update_rows_##suffix, BLOCK_THREADS) \
    (float *master, S *working, const S *update, const float *factors, const float *norm, \
     const CudaScalars *scalars, int64_t m, int64_t n, MuonShape shape) { \
        if (is_dropped(*norm)) return; \
        const Weights<S> weights = {master, working}; \
        update_rows(weights, update, factors, m, n, step_of(*scalars, shape)); \
    } \
    EXPORT_KERNEL(muon_update_rows_##suffix) \
    KERNEL(muon_update_transposed_##suffix, BLOCK_THREADS) \
    (float *master, S *working, const S *update, const float *factors, const float *norm, \
     const CudaScalars *scalars, int64_t m, int64_t n, MuonShape shape) { \
        __shared__ float tile[MUON_TILE][MUON_TILE + 1]; \
        if (is_dropped(*norm)) return; \
        const Weights<S> weights = {master, working}; \
        update_transposed(weights, update, factors, m, n, step_of(*scalars, shape), tile); \
    } \
    EXPORT_KERNEL(muon_update_transposed_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
