/* What attention's forward and backward on tensor cores share: tiles in shared memory, the fragments of
 * mma.m16n8k16, and the view, which says what keys a query sees.
 *
 * A tile is a few rows of queries, keys or values, PADDED columns wide: 64 or 128, the next that holds the
 * head dimension D, with zeros from column D on. Rows are cut into chunks of 8 elements (16 bytes); chunk c
 * of row r is stored at c ^ (r % 8), so that the 8 rows of a column of chunks lie in different banks.
 * Qkv rows are 16-byte aligned, which is why D is a multiple of 8. */
#ifndef HEARTH_CUDA_KERNELS_ATTENTION_CUH
#define HEARTH_CUDA_KERNELS_ATTENTION_CUH

#include "exponential.cuh"
#include "vectors.cuh"

/* --- tiles --- */

/* Elements from a tile's start to chunk `chunk` of row `row`. */
template <int PADDED> DEVICE int tile_at(int row, int chunk) {
    return row * PADDED + ((chunk ^ (row & 7)) << 3);
}

/* Starts copying rows first.. of global[rows][stride] to a tile of ROWS, with the THREADS of the block;
 * what lies behind the last row or column D is zero. */
template <int PADDED, int ROWS, int THREADS>
DEVICE void tile_load(Bf16 *tile, const Bf16 *global, int64_t stride, int first, int rows, int D) {
    constexpr int CHUNKS = PADDED / 8;
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
        const int at = i * THREADS + (int)threadIdx.x;
        const int row = at / CHUNKS, chunk = at % CHUNKS;
        const bool valid = first + row < rows && chunk * 8 < D;
        const Bf16 *from = valid ? global + (first + row) * stride + chunk * 8 : global;
        copy_async16(tile + tile_at<PADDED>(row, chunk), from, valid);
    }
}

/* Writes 16 rows of a tile, from row `row`, with one warp: row r of the tile is row first + r of
 * global[rows][stride]. */
template <int PADDED>
DEVICE void tile_store(Bf16 *global, int64_t stride, int first, int rows, int D, const Bf16 *tile,
                       int row) {
    constexpr int CHUNKS = PADDED / 8;
#pragma unroll
    for (int i = 0; i < 16 * CHUNKS / 32; i++) {
        const int at = i * 32 + (int)threadIdx.x % 32;
        const int r = row + at / CHUNKS, chunk = at % CHUNKS;
        if (first + r < rows && chunk * 8 < D)
            *(uint4 *)(global + (first + r) * stride + chunk * 8) =
                *(const uint4 *)(tile + tile_at<PADDED>(r, chunk));
    }
}

/* --- fragments of mma.m16n8k16 ---
 *
 * Lane l holds of an accumulator [16][8]: rows l/4 (elements 0, 1) and l/4 + 8 (elements 2, 3), columns
 * 2(l%4) and 2(l%4) + 1. Two accumulators side by side, packed to bf16, are the a of the next product:
 * pack(left 0, 1), pack(left 2, 3), pack(right 0, 1), pack(right 2, 3). */

DEVICE void fragment_pack(uint32_t (&a)[4], const float (&left)[4], const float (&right)[4]) {
    a[0] = pack_bf16(left[0], left[1]);
    a[1] = pack_bf16(left[2], left[3]);
    a[2] = pack_bf16(right[0], right[1]);
    a[3] = pack_bf16(right[2], right[3]);
}

/* a[16,16]: rows row.. of a tile, its columns 16k... */
template <int PADDED> DEVICE void fragment_a(uint32_t (&a)[4], const Bf16 *tile, int row, int k) {
    const int lane = threadIdx.x % 32;
    load_matrix_x4(a, tile + tile_at<PADDED>(row + lane % 16, 2 * k + lane / 16));
}

/* b[16,16] = the transpose of rows row.. of a tile, its columns 16k..: two b's of mma_bf16() side by
 * side, for products with a tile transposed (queries with keys). */
template <int PADDED> DEVICE void fragment_b(uint32_t (&b)[4], const Bf16 *tile, int row, int k) {
    const int lane = threadIdx.x % 32;
    load_matrix_x4(b, tile + tile_at<PADDED>(row + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
}

/* b[16,16] = rows row.. of a tile as they are, its columns 16n..: for products with a tile (weights with
 * values). */
template <int PADDED>
DEVICE void fragment_b_rows(uint32_t (&b)[4], const Bf16 *tile, int row, int n) {
    const int lane = threadIdx.x % 32;
    load_matrix_x4_transposed(b, tile + tile_at<PADDED>(row + lane % 16, 2 * n + lane / 16));
}

/* left, right [16,8] each += a[16,16] · b[16,16] */
DEVICE void mma_pair(float (&left)[4], float (&right)[4], const uint32_t (&a)[4],
                     const uint32_t (&b)[4]) {
    const uint32_t b_left[2] = {b[0], b[1]}, b_right[2] = {b[2], b[3]};
    mma_bf16(left, a, b_left);
    mma_bf16(right, a, b_right);
}

/* Writes accumulators [16][PADDED], times a `scale` for each of the two rows, to rows row.. of a tile. */
template <int PADDED>
DEVICE void fragment_store(Bf16 *tile, int row, const float (&acc)[PADDED / 8][4],
                           const float (&scale)[2]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int chunk = 0; chunk < PADDED / 8; chunk++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int at = tile_at<PADDED>(row + r * 8 + lane / 4, chunk) + lane % 4 * 2;
            *(uint32_t *)(tile + at) =
                pack_bf16(acc[chunk][2 * r] * scale[r], acc[chunk][2 * r + 1] * scale[r]);
        }
}

/* Over the four lanes that hold a row of an accumulator. */
DEVICE float quad_sum(float value) {
    value += __shfl_xor_sync(FULL_WARP, value, 1);
    return value + __shfl_xor_sync(FULL_WARP, value, 2);
}

DEVICE float quad_max(float value) {
    value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, 1));
    return fmaxf(value, __shfl_xor_sync(FULL_WARP, value, 2));
}

/* --- the view --- */

/* Query t of a row sees keys lowest_key(t)..t. */
typedef struct View {
    const int32_t *document_start; /* [T], never decreasing; or null */
    int T, window;                 /* keys before the query's own; T for no window */
} View;

/* It never decreases with t, so a block of queries sees no key before the lowest of its first query, and
 * a block of keys no query after the last whose lowest is within it. t may be behind T. */
DEVICE int lowest_key(const View &view, int t) {
    const int begins = view.document_start ? view.document_start[min(t, view.T - 1)] : 0;
    return max(begins, t - view.window);
}

#endif
