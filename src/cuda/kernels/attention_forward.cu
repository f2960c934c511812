/* Flash attention, forward (arXiv 2205.14135), in bf16 on tensor cores. A block takes a tile of 64 queries
 * of one head, 16 for each warp, and walks over the tiles of keys that the view lets any of them see, so
 * the cost is proportional to the window.
 *
 * Tiles of keys and values alternate through a ring of three in shared memory, of which the queries fill
 * the third until they are in registers: two copies are always on their way. 48 KB with 128 columns, so
 * two blocks fit the 100 KB of sm_120, and one computes while the other waits. */
#include "attention.cuh"
#include "cuda/attention_forward.h"

#define LN_2 0.693147181f

/* The softmax of two rows of a warp's accumulators so far, as in arXiv 1805.02867. */
typedef struct Softmax {
    float largest[2]; /* in base 2 */
    float sum[2];     /* this lane's part */
} Softmax;

/* scores[16][64] += queries · keysᵀ */
template <int PADDED>
DEVICE void score(float (&scores)[8][4], const uint32_t (&queries)[PADDED / 16][4],
                  const Bf16 *keys) {
#pragma unroll
    for (int k = 0; k < PADDED / 16; k++)
#pragma unroll
        for (int n = 0; n < 4; n++) {
            uint32_t b[4];
            fragment_b<PADDED>(b, keys, 16 * n, k);
            mma_pair(scores[2 * n], scores[2 * n + 1], queries[k], b);
        }
}

/* Hides the keys that query t + 8 * r does not see; lane's columns begin at key `key`. */
DEVICE void mask(float (&scores)[8][4], int t, int key, const int (&lowest)[2]) {
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int r = c / 2, s = key + 8 * i + c % 2;
            if (s > t + 8 * r || s < lowest[r]) scores[i][c] = -INFINITY;
        }
}

/* Scores become weights relative to the largest so far, to which sums and output are brought too. */
template <int PADDED>
DEVICE void weigh(float (&scores)[8][4], Softmax &softmax, float (&out)[PADDED / 8][4],
                  float scale) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float largest = -INFINITY;
#pragma unroll
        for (int i = 0; i < 8; i++)
            largest = fmaxf(largest, fmaxf(scores[i][2 * r], scores[i][2 * r + 1]));
        largest = fmaxf(softmax.largest[r], quad_max(largest) * scale);
        /* A row may see none of its first tile: 2^(-inf - 0) is 0. */
        const float reference = largest == -INFINITY ? 0 : largest;
        const float correction = exp2_approximate(softmax.largest[r] - reference);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int c = 2 * r; c < 2 * r + 2; c++) {
                scores[i][c] = exp2_approximate(fmaf(scores[i][c], scale, -reference));
                sum += scores[i][c];
            }
        softmax.sum[r] = softmax.sum[r] * correction + sum;
        softmax.largest[r] = largest;
#pragma unroll
        for (int i = 0; i < PADDED / 8; i++) {
            out[i][2 * r] *= correction;
            out[i][2 * r + 1] *= correction;
        }
    }
}

/* out[16][PADDED] += weights[16][64] · values */
template <int PADDED>
DEVICE void gather(float (&out)[PADDED / 8][4], const float (&weights)[8][4], const Bf16 *values) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        uint32_t a[4];
        fragment_pack(a, weights[2 * k], weights[2 * k + 1]);
#pragma unroll
        for (int n = 0; n < PADDED / 16; n++) {
            uint32_t b[4];
            fragment_b_rows<PADDED>(b, values, 16 * k, n);
            mma_pair(out[2 * n], out[2 * n + 1], a, b);
        }
    }
}

template <int PADDED>
DEVICE void load(Bf16 *tile, const Bf16 *global, int64_t stride, int first, const View &view,
                 int D) {
    tile_load<PADDED, FORWARD_TILE, FORWARD_THREADS>(tile, global, stride, first, view.T, D);
}

/* The tile of queries from `first` of one head: q, k and v are where the head begins in the row of the
 * batch, with `stride` elements a token; out likewise, with out_stride; lse[T]. */
template <int PADDED>
DEVICE void attend(Bf16 *out, float *lse, const Bf16 *q, const Bf16 *k, const Bf16 *v, Bf16 *shared,
                   const View &view, int first, int stride, int out_stride, int D, float scale) {
    constexpr int TILE = FORWARD_TILE, SIZE = TILE * PADDED;
    Bf16 *key_tile = shared, *value_tile = shared + SIZE, *free_tile = shared + 2 * SIZE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int t = first + 16 * warp + lane / 4; /* of this lane's first row */
    const int lowest[2] = {lowest_key(view, t), lowest_key(view, t + 8)};
    const int warp_lowest = __shfl_sync(FULL_WARP, lowest[1], 31);
    const int end = min(first + TILE, view.T);
    int key = lowest_key(view, first) / TILE * TILE;

    load<PADDED>(free_tile, q, stride, first, view, D);
    copy_async_commit();
    load<PADDED>(key_tile, k, stride, key, view, D);
    copy_async_commit();
    load<PADDED>(value_tile, v, stride, key, view, D);
    copy_async_commit();

    copy_async_wait<2>();
    __syncthreads();
    uint32_t queries[PADDED / 16][4];
#pragma unroll
    for (int i = 0; i < PADDED / 16; i++) fragment_a<PADDED>(queries[i], free_tile, 16 * warp, i);
    Softmax softmax = {{-INFINITY, -INFINITY}, {0, 0}};
    float acc[PADDED / 8][4] = {};

    for (; key < end; key += TILE) {
        const bool more = key + TILE < end;
        float scores[8][4] = {};
        copy_async_wait<1>();
        __syncthreads(); /* the keys are there; all are done with the free tile */
        if (more) load<PADDED>(free_tile, k, stride, key + TILE, view, D);
        copy_async_commit();
        score<PADDED>(scores, queries, key_tile);
        if (key + TILE - 1 > first + 16 * warp || key < warp_lowest)
            mask(scores, t, key + lane % 4 * 2, lowest);
        weigh<PADDED>(scores, softmax, acc, scale * LOG2_E);

        copy_async_wait<1>();
        __syncthreads(); /* the values are there; all are done with the keys */
        if (more) load<PADDED>(key_tile, v, stride, key + TILE, view, D);
        copy_async_commit();
        gather<PADDED>(acc, scores, value_tile);

        Bf16 *done = value_tile;
        value_tile = key_tile;
        key_tile = free_tile;
        free_tile = done;
    }

    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float sum = quad_sum(softmax.sum[r]);
        inverse[r] = 1 / sum;
        if (lane % 4 == 0 && t + 8 * r < view.T)
            lse[t + 8 * r] = softmax.largest[r] * LN_2 + logf(sum);
    }
    /* No copy is on its way, and only the last values' tile, now called free, may be in use. */
    fragment_store<PADDED>(key_tile, 16 * warp, acc, inverse);
    __syncwarp();
    tile_store<PADDED>(out, out_stride, first, view.T, D, key_tile, 16 * warp);
}

/* out[N,H*D], lse[B,H,T]; qkv[N,(H+2KV)*D], document_start[N] or null. A grid of B * H by tiles of
 * queries, the last of which have most keys and come first. */
template <int PADDED>
DEVICE void attention_forward(Bf16 *out, float *lse, const Bf16 *qkv, const int32_t *document_start,
                              Bf16 *shared, int T, int H, int KV, int D, int window, float scale) {
    const int64_t b = blockIdx.x / H, h = blockIdx.x % H;
    const int group = (int)h / (H / KV), stride = (H + 2 * KV) * D;
    const Bf16 *row = qkv + b * T * stride;
    const View view = {document_start ? document_start + b * T : document_start, T, window};
    attend<PADDED>(out + (b * T * H + h) * D, lse + blockIdx.x * (int64_t)T, row + h * D,
                   row + (H + group) * D, row + (H + KV + group) * D, shared, view,
                   (int)(gridDim.y - 1 - blockIdx.y) * FORWARD_TILE, stride, H * D, D, scale);
}

KERNEL(attention_forward_64_bf16, FORWARD_THREADS)
(Bf16 *out, float *lse, const Bf16 *qkv, const int32_t *document_start, int T, int H, int KV, int D,
 int window, float scale) {
    DYNAMIC_SHARED(Bf16, shared);
    attention_forward<64>(out, lse, qkv, document_start, shared, T, H, KV, D, window, scale);
}
EXPORT_KERNEL(attention_forward_64_bf16)

KERNEL(attention_forward_128_bf16, FORWARD_THREADS)
(Bf16 *out, float *lse, const Bf16 *qkv, const int32_t *document_start, int T, int H, int KV, int D,
 int window, float scale) {
    DYNAMIC_SHARED(Bf16, shared);
    attention_forward<128>(out, lse, qkv, document_start, shared, T, H, KV, D, window, scale);
}
EXPORT_KERNEL(attention_forward_128_bf16)
