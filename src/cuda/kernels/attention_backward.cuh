/* What the two passes of attention's backward share (arXiv 2307.08691). Of one head, in powers of two,
 *
 *     P = 2^(scale log2(e) Q K' - lse)    dS = P o (dO V' - delta),  delta = rowsum(dO o O)
 *     dV = P' dO    dK = scale dS' Q    dQ = scale dS K
 *
 * One pass owns keys and streams queries, the other owns queries and streams keys: no sum crosses blocks,
 * so nothing depends on the order they run in. A block owns PADDED rows of two matrices, 16 for each warp,
 * and streams two others past them, BACKWARD_STREAMED rows at a time, the next tiles being copied
 * meanwhile. P and dS go from one product to the next in registers. */
#ifndef HEARTH_CUDA_KERNELS_ATTENTION_BACKWARD_CUH
#define HEARTH_CUDA_KERNELS_ATTENTION_BACKWARD_CUH

#include "attention.cuh"
#include "cuda/attention_backward.h"

/* One row of the batch. */
typedef struct Sequence {
    Bf16 *dqkv;
    const Bf16 *qkv, *dout;
    int stride, dout_stride;  /* elements from one token to the next */
    const float2 *statistics; /* [H][aligned]: lse in powers of two, delta */
    int aligned, H, KV, D;
    float scale;
    View view;
} Sequence;

DEVICE Sequence sequence_of(int64_t b, Bf16 *dqkv, const Bf16 *dout, const Bf16 *qkv,
                            const float2 *statistics, const int32_t *document_start, int T, int H,
                            int KV, int D, int window, float scale) {
    const int stride = (H + 2 * KV) * D, dout_stride = H * D, aligned = BACKWARD_ALIGNED(T);
    return {dqkv + b * T * stride,
            qkv + b * T * stride,
            dout + b * T * dout_stride,
            stride,
            dout_stride,
            statistics + b * H * aligned,
            aligned,
            H,
            KV,
            D,
            scale,
            {document_start ? document_start + b * T : nullptr, T, window}};
}

/* Starts copying rows first.. of a query head and of its output's gradient to tiles. */
template <int PADDED, int ROWS>
DEVICE void queries_load(Bf16 *q, Bf16 *dout, const Sequence &sequence, int head, int first) {
    const int D = sequence.D, T = sequence.view.T;
    tile_load<PADDED, ROWS, BACKWARD_THREADS(PADDED)>(q, sequence.qkv + head * D, sequence.stride,
                                                      first, T, D);
    tile_load<PADDED, ROWS, BACKWARD_THREADS(PADDED)>(dout, sequence.dout + head * D,
                                                      sequence.dout_stride, first, T, D);
}

/* The same of a key head's keys and values. */
template <int PADDED, int ROWS>
DEVICE void keys_load(Bf16 *k, Bf16 *v, const Sequence &sequence, int head, int first) {
    const int D = sequence.D, T = sequence.view.T;
    const Bf16 *keys = sequence.qkv + (sequence.H + head) * D, *values = keys + sequence.KV * D;
    tile_load<PADDED, ROWS, BACKWARD_THREADS(PADDED)>(k, keys, sequence.stride, first, T, D);
    tile_load<PADDED, ROWS, BACKWARD_THREADS(PADDED)>(v, values, sequence.stride, first, T, D);
}

/* Calls load(i, tile, other) to start copying, then use(i, tile, other) for i = 0..count - 1. Copies
 * started before are waited for too. tiles: room for four. */
template <int PADDED, typename Load, typename Use>
DEVICE void stream(Bf16 *tiles, int count, Load load, Use use) {
    constexpr int SIZE = BACKWARD_STREAMED * PADDED;
    load(0, tiles, tiles + SIZE);
    copy_async_commit();
    for (int i = 0; i < count; i++) {
        Bf16 *now = tiles + i % 2 * 2 * SIZE, *next = tiles + (i + 1) % 2 * 2 * SIZE;
        copy_async_wait<0>();
        __syncthreads(); /* these tiles are there, and all are done with those before */
        if (i + 1 < count) load(i + 1, next, next + SIZE);
        copy_async_commit();
        use(i, now, now + SIZE);
    }
}

/* Sixteen owned rows by the streamed ones, as accumulators. */
typedef float Scores[BACKWARD_STREAMED / 8][4];

/* scores = rows row.. of an owned tile · a streamed tile transposed */
template <int PADDED>
DEVICE void scores_compute(Scores &scores, const Bf16 *owned, int row, const Bf16 *streamed) {
#pragma unroll
    for (int n = 0; n < BACKWARD_STREAMED / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) scores[n][i] = 0;
#pragma unroll
    for (int k = 0; k < PADDED / 16; k++) {
        uint32_t a[4], b[4];
        fragment_a<PADDED>(a, owned, row, k);
#pragma unroll
        for (int n = 0; n < BACKWARD_STREAMED / 16; n++) {
            fragment_b<PADDED>(b, streamed, 16 * n, k);
            mma_pair(scores[2 * n], scores[2 * n + 1], a, b);
        }
    }
}

/* Whether any of the queries query.. sees any of the keys key.., and whether all see all. */
DEVICE bool sees_any(const View &view, int query, int queries, int key, int keys) {
    return query + queries > key && lowest_key(view, query) < key + keys;
}

DEVICE bool sees_all(const View &view, int query, int queries, int key, int keys) {
    return query >= key + keys - 1 && lowest_key(view, min(query + queries, view.T) - 1) <= key;
}

/* Hides the scores of keys that their query does not see; owned, streamed: positions of the first rows. */
template <bool OWNS_KEYS>
DEVICE void scores_mask(Scores &scores, const View &view, int owned, int streamed) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < BACKWARD_STREAMED / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int down = owned + lane / 4 + i / 2 * 8;
            const int across = streamed + n * 8 + lane % 4 * 2 + i % 2;
            const int query = OWNS_KEYS ? across : down, key = OWNS_KEYS ? down : across;
            const int lowest = lowest_key(view, query); /* needed or not: no branches */
            if ((key > query) | (key < lowest)) scores[n][i] = -INFINITY;
        }
}

/* From a score to its weight, and from the weight's gradient to the score's. */
DEVICE void weigh(float &score, float &dscore, float2 statistics, float scale) {
    score = exp2_approximate(fmaf(score, scale, -statistics.x));
    dscore = score * (dscore - statistics.y);
}

/* gradient[16][PADDED] += scores, rounded to bf16, · a streamed tile */
template <int PADDED>
DEVICE void gradient_add(float (&gradient)[PADDED / 8][4], const Scores &scores,
                         const Bf16 *streamed) {
#pragma unroll
    for (int k = 0; k < BACKWARD_STREAMED / 16; k++) {
        uint32_t a[4], b[4];
        fragment_pack(a, scores[2 * k], scores[2 * k + 1]);
#pragma unroll
        for (int n = 0; n < PADDED / 16; n++) {
            fragment_b_rows<PADDED>(b, streamed, 16 * k, n);
            mma_pair(gradient[2 * n], gradient[2 * n + 1], a, b);
        }
    }
}

/* Writes a warp's 16 rows of a gradient, times scale, to a head of dqkv, by way of the warp's own rows of
 * an owned tile. */
template <int PADDED>
DEVICE void gradient_store(const Sequence &sequence, int head, int first, Bf16 *tile, int row,
                           const float (&gradient)[PADDED / 8][4], float scale) {
    const float scales[2] = {scale, scale};
    __syncwarp(); /* the warp has read these rows */
    fragment_store<PADDED>(tile, row, gradient, scales);
    __syncwarp();
    tile_store<PADDED>(sequence.dqkv + head * sequence.D, sequence.stride, first, sequence.view.T,
                       sequence.D, tile, row);
}

#endif
