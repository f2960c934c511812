/* Cross-entropy and its gradient in place, a row of logits to a block. */
#include "cuda/blocks.h"
#include "exponential.cuh"
#include "reduce.cuh"
#include "vectors.cuh"

/* A row as pieces of LANES that are aligned whatever the row's start: it begins `begin` numbers after
 * `start` and ends before `end`. Rows of an odd V have their own begin each. */
template <class S> struct AlignedRow {
    S *start;
    int64_t begin, end;
};

template <class S> DEVICE AlignedRow<S> aligned_row(S *row, int64_t V) {
    const int64_t begin = (int64_t)((uintptr_t)row % 16 / sizeof(S));
    return {row - begin, begin, begin + V};
}

/* The sum of exponentials of some numbers, as sum * e^largest. */
typedef struct Exponentials {
    float largest, sum;
} Exponentials;

/* What is subtracted before exponentials: never -infinity, which would make NaN of numbers that are. */
DEVICE float shift_of(float largest) {
    return largest == -INFINITY ? 0 : largest;
}

DEVICE Exponentials joined(Exponentials a, Exponentials b) {
    const float largest = fmaxf(a.largest, b.largest), shift = shift_of(largest);
    return {largest,
            a.sum * exponential(a.largest - shift) + b.sum * exponential(b.largest - shift)};
}

DEVICE Exponentials warp_joined(Exponentials mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        mine = joined(mine, {__shfl_xor_sync(FULL_WARP, mine.largest, distance),
                             __shfl_xor_sync(FULL_WARP, mine.sum, distance)});
    return mine;
}

/* Every thread gets the whole block's. */
DEVICE Exponentials block_joined(Exponentials mine, Exponentials (&parts)[WARPS_MOST]) {
    const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
    mine = warp_joined(mine);
    if (lane == 0) parts[threadIdx.x / 32] = mine;
    __syncthreads();
    const Exponentials none = {-INFINITY, 0};
    return warp_joined(lane < warps ? parts[lane] : none);
}

/* Those of the numbers that fall to this thread, in one pass. */
template <class S> DEVICE Exponentials exponentials(const AlignedRow<S> &row) {
    Exponentials all = {-INFINITY, 0};
    for (int64_t v = threadIdx.x * LANES<S>; v < row.end; v += blockDim.x * LANES<S>) {
        float x[LANES<S>];
        load_between(x, row.start + v, row.begin - v, row.end - v, -INFINITY);
        float largest = all.largest;
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) largest = fmaxf(largest, x[i]);
        const float shift = shift_of(largest);
        float sum = all.sum * exponential(all.largest - shift);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) sum += exponential(x[i] - shift);
        all = {largest, sum};
    }
    return all;
}

/* row = (softmax(row) - onehot(target)) * scale */
template <class S>
DEVICE void write_gradient(const AlignedRow<S> &row, int64_t target, float lse, float scale) {
    const int64_t at_target = row.begin + target;
    for (int64_t v = threadIdx.x * LANES<S>; v < row.end; v += blockDim.x * LANES<S>) {
        float x[LANES<S>];
        load_between(x, row.start + v, row.begin - v, row.end - v, 0.0f);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) {
            const float share = exponential(x[i] - lse);
            x[i] = (v + i == at_target ? share - 1 : share) * scale;
        }
        store_between(row.start + v, x, row.begin - v, row.end - v);
    }
}

template <class S> DEVICE void write_zeros(const AlignedRow<S> &row) {
    const float zeros[LANES<S>] = {};
    for (int64_t v = threadIdx.x * LANES<S>; v < row.end; v += blockDim.x * LANES<S>)
        store_between(row.start + v, zeros, row.begin - v, row.end - v);
}

/* losses[n] = logsumexp(logits) - logits[target], in nats; 0 where target is -1. When `gradient`,
 * logits[n,V] are replaced by (softmax - onehot) * scale, 0 where target is -1. */
template <class S>
DEVICE void cross_entropy(float *losses, S *logits, const int32_t *targets, int64_t V, float scale,
                          bool gradient, Exponentials (&parts)[WARPS_MOST]) {
    const int64_t n = blockIdx.x;
    const int32_t target = targets[n];
    const AlignedRow<S> row = aligned_row(logits + n * V, V);
    if (target < 0) {
        if (threadIdx.x == 0) losses[n] = 0;
        if (gradient) write_zeros(row);
        return;
    }
    /* Before the barrier after which rows are overwritten. */
    const float at_target = threadIdx.x == 0 ? to_float(logits[n * V + target]) : 0;
    const Exponentials all = block_joined(exponentials(row), parts);
    const float lse = all.largest + logf(all.sum);
    if (threadIdx.x == 0) losses[n] = lse - at_target;
    if (gradient) write_gradient(row, target, lse, scale);
}

#define INSTANCE(suffix, S) \
    KERNEL(cross_entropy_##suffix, WIDE_BLOCK_THREADS) \
    (float *losses, S *logits, const int32_t *targets, int64_t V, float scale, bool gradient) { \
        __shared__ Exponentials parts[WARPS_MOST]; \
        cross_entropy(losses, logits, targets, V, scale, gradient, parts); \
    } \
    EXPORT_KERNEL(cross_entropy_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
