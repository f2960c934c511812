/* Cross-entropy and its gradient in place, a row of logits to a block. */
#include "cuda/blocks.h"
#include "exponential.cuh"
#include "reduce.cuh"
#include "soft_cap.cuh"
#include "step/operation.h"
#include "vectors.cuh"

/* A row as pieces of LANES that are aligned whatever the row's start: it begins `begin` numbers after
 * `start`, its vocabulary ends before `end` and all of it before `stride_end`. Rows of an odd stride have
 * their own begin each. */
template <class S> struct AlignedRow {
    S *start;
    int64_t begin, end, stride_end;
    float cap; /* 0: none */
};

template <class S> DEVICE AlignedRow<S> aligned_row(S *row, const CrossEntropyShape &shape) {
    const int64_t begin = (int64_t)((uintptr_t)row % 16 / sizeof(S));
    return {row - begin, begin, begin + shape.V, begin + shape.stride, shape.cap};
}

template <class S> DEVICE bool in_vocabulary(const AlignedRow<S> &row, int64_t v) {
    return v >= row.begin && v < row.end;
}

/* What the logits of a piece count as; -infinity outside of the vocabulary. */
template <class S>
DEVICE void load_capped(float (&x)[LANES<S>], const AlignedRow<S> &row, int64_t v) {
    load_between(x, row.start + v, row.begin - v, row.end - v, -INFINITY);
    if (row.cap > 0) {
#pragma unroll
        for (int i = 0; i < LANES<S>; i++)
            if (in_vocabulary(row, v + i)) x[i] = soft_cap(x[i], row.cap);
    }
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
        load_capped(x, row, v);
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

/* (softmax(row) - onehot(target)) * scale, times the slope of the cap; 0 behind the vocabulary. */
template <class S>
DEVICE void write_gradient(const AlignedRow<S> &row, int64_t target, float lse, float scale) {
    const int64_t at_target = row.begin + target;
    for (int64_t v = threadIdx.x * LANES<S>; v < row.stride_end; v += blockDim.x * LANES<S>) {
        float x[LANES<S>];
        load_capped(x, row, v);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) {
            const float share = exponential(x[i] - lse);
            const float slope = row.cap > 0 ? soft_cap_slope(x[i], row.cap) : 1;
            x[i] = (v + i == at_target ? share - 1 : share) * scale * slope;
            if (v + i >= row.end) x[i] = 0;
        }
        store_between(row.start + v, x, row.begin - v, row.stride_end - v);
    }
}

template <class S> DEVICE void write_zeros(const AlignedRow<S> &row) {
    const float zeros[LANES<S>] = {};
    for (int64_t v = threadIdx.x * LANES<S>; v < row.stride_end; v += blockDim.x * LANES<S>)
        store_between(row.start + v, zeros, row.begin - v, row.stride_end - v);
}

/* A logit, uncapped, as that changes nothing, and its place in the vocabulary. */
typedef struct Best {
    float logit;
    int place;
} Best;

DEVICE Best better(Best a, Best b) {
    return b.logit > a.logit || (b.logit == a.logit && b.place < a.place) ? b : a;
}

DEVICE Best warp_best(Best mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        mine = better(mine, {__shfl_xor_sync(FULL_WARP, mine.logit, distance),
                             __shfl_xor_sync(FULL_WARP, mine.place, distance)});
    return mine;
}

/* Where the largest logit stands first: every thread gets it. */
template <class S> DEVICE int find_best(const AlignedRow<S> &row, Best (&parts)[WARPS_MOST]) {
    const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const Best none = {-INFINITY, INT32_MAX};
    Best mine = none;
    for (int64_t v = threadIdx.x * LANES<S>; v < row.end; v += blockDim.x * LANES<S>) {
        float x[LANES<S>];
        load_between(x, row.start + v, row.begin - v, row.end - v, 0.0f);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++)
            if (in_vocabulary(row, v + i)) mine = better(mine, {x[i], (int)(v + i - row.begin)});
    }
    mine = warp_best(mine);
    if (lane == 0) parts[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = warp_best(lane < warps ? parts[lane] : none);
    return mine.place == INT32_MAX ? 0 : mine.place; /* among NaNs there is none */
}

/* What the threads of a block tell each other. */
typedef struct Parts {
    Exponentials exponentials[WARPS_MOST];
    Best best[WARPS_MOST];
} Parts;

/* losses[n] = logsumexp(logits) - logits[target], in nats; 0 where target is -1. best[N], unless null: the
 * places of the largest. If there is to be a gradient, it replaces logits[N,stride]. */
template <class S>
DEVICE void cross_entropy(float *losses, S *logits, int32_t *best, const int32_t *targets,
                          const CrossEntropyShape &shape, Parts &parts) {
    const int64_t n = blockIdx.x;
    const int32_t target = targets[n];
    const AlignedRow<S> row = aligned_row(logits + n * shape.stride, shape);
    if (best) {
        const int place = find_best(row, parts.best);
        if (threadIdx.x == 0) best[n] = place;
    }
    if (target < 0) {
        if (threadIdx.x == 0) losses[n] = 0;
        if (shape.gradient) write_zeros(row);
        return;
    }
    /* Before the barrier after which rows are overwritten. */
    float at_target = threadIdx.x == 0 ? to_float(row.start[row.begin + target]) : 0;
    if (row.cap > 0) at_target = soft_cap(at_target, row.cap);
    const Exponentials all = block_joined(exponentials(row), parts.exponentials);
    const float lse = all.largest + logf(all.sum);
    if (threadIdx.x == 0) losses[n] = lse - at_target;
    if (shape.gradient) write_gradient(row, target, lse, shape.scale);
}

#define INSTANCE(suffix, S) \
    KERNEL(cross_entropy_##suffix, WIDE_BLOCK_THREADS) \
    (float *losses, S *logits, int32_t *best, const int32_t *targets, CrossEntropyShape shape) { \
        __shared__ Parts parts; \
        cross_entropy(losses, logits, best, targets, shape, parts); \
    } \
    EXPORT_KERNEL(cross_entropy_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
