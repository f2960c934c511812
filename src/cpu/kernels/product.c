/* The matrix product of packed factors, in register tiles: as many sums as the registers hold beside
 * the factors. */
#include "cpu/kernels/tile.h"

#if defined(__AVX512F__) || defined(__aarch64__)
enum { TILE_N = 4, SUMS = 24 }; /* vectors in a row of a tile; and in all of it */
#else
enum { TILE_N = 2, SUMS = 12 };
#endif

/* One register tile; m and vectors are constants where this is inlined. What is in c is added last,
 * so that no sum waits for it. */
INLINE void product_tile(float *c, int64_t c_stride, Factor a, Factor b, int m, int vectors,
                         int64_t k, bool add) {
    vfloat sums[SUMS];
#pragma GCC unroll 24
    for (int i = 0; i < m * vectors; i++) sums[i] = splat(0);
    for (int64_t step = 0; step < k; step++) {
        vunit right[TILE_N];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            memcpy(&right[j], b.units + step * b.stride + j * W, sizeof right[j]);
#pragma GCC unroll 24
        for (int i = 0; i < m; i++) {
            vunit left = a.units[i * a.stride + step] - (vunit){0};
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                sums[i * vectors + j] = dot(sums[i * vectors + j], left, right[j]);
        }
    }
#pragma GCC unroll 24
    for (int i = 0; i < m; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            float *at = c + i * c_stride + j * W;
            vstore_f32(at, add ? vload_f32(at) + sums[i * vectors + j] : sums[i * vectors + j]);
        }
}

/* Narrow tiles are higher: an instruction's latency is that of a dozen others. */
INLINE void product_columns(float *c, int64_t c_stride, Factor a, Factor b, int64_t m, int vectors,
                            int64_t k, bool add) {
    const int high = vectors > 2 ? SUMS / 4 : SUMS / 2;
    for (; m >= high; m -= high, c += high * c_stride, a.units += high * a.stride)
        product_tile(c, c_stride, a, b, high, vectors, k, add);
    for (; m >= 4; m -= 4, c += 4 * c_stride, a.units += 4 * a.stride)
        product_tile(c, c_stride, a, b, 4, vectors, k, add);
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
