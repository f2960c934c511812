/* The embedding of tokens: a gather of rows, and its gradient, a scatter that adds. */
#include "cuda/blocks.h"
#include "vectors.cuh"

/* out[N,C] = weight[tokens[N],C], zeros where a token is -1; a row to a warp */
template <class S>
DEVICE void embedding_forward(S *out, const int32_t *tokens, const S *weight, int64_t N,
                              int64_t C) {
    const int64_t n = (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    if (n >= N) return;
    const int32_t token = tokens[n];
    const S *from = weight + token * C;
    const float zeros[LANES<S>] = {};
    for (int64_t c = threadIdx.x % 32 * LANES<S>; c < C; c += 32 * LANES<S>)
        if (token < 0)
            store(out + n * C + c, zeros, C - c);
        else
            copy_lanes(out + n * C + c, from + c, C - c);
}

/* A block adds the rows of its own tokens, those with id % blocks == block, in their order: no two blocks
 * meet in a row of the gradient, and the bits do not depend on which runs first. It looks through all
 * tokens, a tile at a time, and lists its own. */
enum { TILE = 1024, PARTS = TILE / BLOCK_THREADS, GROUPS = TILE / 32 };

typedef struct Matches {
    int32_t id[TILE], place[TILE]; /* place in the tile */
    int count[GROUPS];             /* of 32 places each */
} Matches;

/* How many of the tile's first `count` tokens are the block's. */
DEVICE int list_matches(Matches &matches, const int32_t *tokens, int64_t count) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int32_t id[PARTS];
    uint32_t found[PARTS];
    int first[PARTS], total = 0;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        const unsigned place = part * BLOCK_THREADS + threadIdx.x;
        id[part] = place < count ? tokens[place] : -1;
        const bool own = id[part] >= 0 && (uint32_t)id[part] % gridDim.x == blockIdx.x;
        found[part] = __ballot_sync(FULL_WARP, own);
        if (lane == 0) matches.count[part * BLOCK_WARPS + warp] = __popc(found[part]);
    }
    __syncthreads();
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        if (group % BLOCK_WARPS == (int)warp) first[group / BLOCK_WARPS] = total;
        total += matches.count[group];
    }
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        if (found[part] >> lane & 1) {
            const int at = first[part] + __popc(found[part] & ((1u << lane) - 1));
            matches.id[at] = id[part];
            matches.place[at] = part * BLOCK_THREADS + threadIdx.x;
        }
    __syncthreads();
    return total;
}

/* As store(), by an intrinsic: nvcc would merge stores of 16 bytes with those of single numbers here. */
template <int L> DEVICE void store_sums(float *to, const float (&sum)[L], int64_t count) {
    if (count < L || !is_aligned<16>(to)) {
        store(to, sum, count);
        return;
    }
#pragma unroll
    for (int i = 0; i < L; i += 4)
        __stwb(reinterpret_cast<float4 *>(to + i),
               make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
}

/* Adds to columns c.. of dweight those of the listed rows of dout. Rows are asked for AHEAD at a time,
 * and a sum stays in registers while its token repeats. */
template <class S>
DEVICE void add_rows(float *dweight, const S *dout, const Matches &matches, int total, int64_t c,
                     int64_t C) {
    enum { AHEAD = 3 };
    int32_t id = -1;
    float sum[LANES<S>];
    for (int first = 0; first < total; first += AHEAD) {
        float row[AHEAD][LANES<S>];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (first + i < total) load(row[i], dout + matches.place[first + i] * C + c, C - c);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (first + i >= total) break;
            if (matches.id[first + i] != id) {
                if (id >= 0) store_sums(dweight + id * C + c, sum, C - c);
                id = matches.id[first + i];
                load(sum, dweight + id * C + c, C - c);
            }
#pragma unroll
            for (int lane = 0; lane < LANES<S>; lane++) sum[lane] += row[i][lane];
        }
    }
    if (id >= 0) store_sums(dweight + id * C + c, sum, C - c);
}

/* dweight[V,C] += the rows of dout[N,C] at their tokens */
template <class S>
DEVICE void embedding_backward(float *dweight, const S *dout, const int32_t *tokens, int64_t N,
                               int64_t C, Matches &matches) {
    for (int64_t start = 0; start < N; start += TILE) {
        const int total = list_matches(matches, tokens + start, N - start);
        for (int64_t c = threadIdx.x * LANES<S>; c < C; c += BLOCK_THREADS * LANES<S>)
            add_rows(dweight, dout + start * C, matches, total, c, C);
    }
}

#define INSTANCE(suffix, S) \
    KERNEL(embedding_forward_##suffix, BLOCK_THREADS) \
    (S * out, const int32_t *tokens, const S *weight, int64_t N, int64_t C) { \
        embedding_forward(out, tokens, weight, N, C); \
    } \
    EXPORT_KERNEL(embedding_forward_##suffix) \
    KERNEL(embedding_backward_##suffix, BLOCK_THREADS) \
    (float *dweight, const S *dout, const int32_t *tokens, int64_t N, int64_t C) { \
        __shared__ Matches matches; \
        embedding_backward(dweight, dout, tokens, N, C, matches); \
    } \
    EXPORT_KERNEL(embedding_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
