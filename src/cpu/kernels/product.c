/* The matrix product of packed factors, in register tiles of TILE_M x TILE_N vectors: as many sums
 * as the registers hold beside the factors. */
#include "cpu/kernels/tile.h"

enum { TILE_M = 6 };
#if defined(__AVX512F__) || defined(__aarch64__)
enum { TILE_N = 4 };
#else
enum { TILE_N = 2 };
#endif

#define INLINE static inline __attribute__((always_inline))

/* One register tile; m and vectors are constants where this is inlined. */
INLINE void product_tile(float *c, int64_t c_stride, Factor a, Factor b, int m, int vectors,
                         int64_t k, bool add) {
    vfloat sums[TILE_M][TILE_N];
#pragma GCC unroll 6
    for (int i = 0; i < m; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            sums[i][j] = add ? vload_f32(c + i * c_stride + j * W) : splat(0);
    for (int64_t step = 0; step < k; step++) {
        vunit right[TILE_N];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            memcpy(&right[j], b.units + step * b.stride + j * W, sizeof right[j]);
#pragma GCC unroll 6
        for (int i = 0; i < m; i++) {
            vunit left = a.units[i * a.stride + step] - (vunit){0};
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] = dot(sums[i][j], left, right[j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < m; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) vstore_f32(c + i * c_stride + j * W, sums[i][j]);
}

INLINE void product_columns(float *c, int64_t c_stride, Factor a, Factor b, int64_t m, int vectors,
                            int64_t k, bool add) {
    for (; m >= TILE_M; m -= TILE_M, c += TILE_M * c_stride, a.units += TILE_M * a.stride)
        product_tile(c, c_stride, a, b, TILE_M, vectors, k, add);
    if (m == 4) product_tile(c, c_stride, a, b, 4, vectors, k, add);
    if (m == 2) product_tile(c, c_stride, a, b, 2, vectors, k, add);
}

void product(float *c, int64_t c_stride, Factor a, Factor b, int64_t m, int64_t n, int64_t k,
             bool add) {
    for (; n >= TILE_N * W; n -= TILE_N * W, c += TILE_N * W, b.units += TILE_N * W)
        product_columns(c, c_stride, a, b, m, TILE_N, k, add);
    const int64_t rest = n / W;
    if (rest == 1) product_columns(c, c_stride, a, b, m, 1, k, add);
    if (TILE_N > 2 && rest == 2) product_columns(c, c_stride, a, b, m, 2, k, add);
    if (TILE_N > 2 && rest == 3) product_columns(c, c_stride, a, b, m, 3, k, add);
}
