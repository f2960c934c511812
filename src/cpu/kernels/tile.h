/* Small matrix products of packed operands, and their packing. A matrix product sums over an index;
 * an operand is packed in Units of that index (dot.h), as the left factor [m][k] or the right one
 * [k][n]. From storage x[rows][columns] there are four forms:
 *
 *     left,  summed over columns   [rows][columns/UNIT]     pack_along
 *     right, summed over columns   [columns/UNIT][rows]     its transpose
 *     right, summed over rows      [rows/UNIT][columns]     pack_across
 *     left,  summed over rows      [columns][rows/UNIT]     its transpose */
#ifndef HEARTH_CPU_KERNELS_TILE_H
#define HEARTH_CPU_KERNELS_TILE_H

#include "cpu/kernels/dot.h"

/* Products are computed in register tiles of TILE_M x TILE_N vectors: as many sums as registers
 * hold. */
enum { TILE_M = 6 };
#if defined(__AVX512F__) || defined(__aarch64__)
enum { TILE_N = 4 };
#else
enum { TILE_N = 2 };
#endif

/* c[m][vectors * W] += a[m][k] b[k][..]; m and vectors are constants where this is inlined. */
static inline __attribute__((always_inline)) void tile_product(float *c, int64_t ldc, const Unit *a,
                                                               int64_t lda, const Unit *b,
                                                               int64_t ldb, int m, int vectors,
                                                               int64_t k) {
    vfloat sums[TILE_M][TILE_N];
#pragma GCC unroll 6
    for (int i = 0; i < m; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) sums[i][j] = vload_f32(c + i * ldc + j * W);
    for (int64_t step = 0; step < k; step++) {
        vunit right[TILE_N];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            memcpy(&right[j], b + step * ldb + j * W, sizeof right[j]);
#pragma GCC unroll 6
        for (int i = 0; i < m; i++) {
            vunit left = a[i * lda + step] - (vunit){0};
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] = dot(sums[i][j], left, right[j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < m; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) vstore_f32(c + i * ldc + j * W, sums[i][j]);
}

static inline __attribute__((always_inline)) void tile_column(float *c, int64_t ldc, const Unit *a,
                                                              int64_t lda, const Unit *b,
                                                              int64_t ldb, int64_t m, int vectors,
                                                              int64_t k) {
    for (; m >= TILE_M; m -= TILE_M, c += TILE_M * ldc, a += TILE_M * lda)
        tile_product(c, ldc, a, lda, b, ldb, TILE_M, vectors, k);
    if (m == 4) tile_product(c, ldc, a, lda, b, ldb, 4, vectors, k);
    if (m == 2) tile_product(c, ldc, a, lda, b, ldb, 2, vectors, k);
}

/* c[m][n] += a[m][k] b[k][n], k in units; m is even, n a multiple of W. Each number is summed in
 * the order of k whatever the sizes. */
static inline void product(float *c, int64_t ldc, const Unit *a, int64_t lda, const Unit *b,
                           int64_t ldb, int64_t m, int64_t n, int64_t k) {
    for (; n >= TILE_N * W; n -= TILE_N * W, c += TILE_N * W, b += TILE_N * W)
        tile_column(c, ldc, a, lda, b, ldb, m, TILE_N, k);
    switch (n / W) {
    case 1:
        tile_column(c, ldc, a, lda, b, ldb, m, 1, k);
        break;
#if defined(__AVX512F__) || defined(__aarch64__)
    case 2:
        tile_column(c, ldc, a, lda, b, ldb, m, 2, k);
        break;
    case 3:
        tile_column(c, ldc, a, lda, b, ldb, m, 3, k);
        break;
#endif
    default:
        break;
    }
}

/* to[c][r] = from[r][c], for numbers of 32 bits */
static inline void transpose(Unit *to, int64_t to_stride, const Unit *from, int64_t from_stride,
                             int64_t rows, int64_t columns) {
    for (int64_t r0 = 0; r0 < rows; r0 += 16)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t r = r0; r < rows && r < r0 + 16; r++)
                to[c * to_stride + r] = from[r * from_stride + c];
}

/* Columns c .. c + W - 1 of a row; zeros from `columns` on. */
static inline vfloat load_columns(const Storage *row, int64_t c, int64_t columns) {
    return c + W <= columns ? vload(row + c) : vload_part(row + c, columns - c);
}

/* x[rows][columns] to [padded][columns / UNIT]; rows of zeros from `rows` on. */
static inline void pack_along(Unit *to, const Storage *x, int64_t stride, int64_t rows,
                              int64_t padded, int64_t columns) {
    int64_t width = columns / UNIT;
    for (int64_t r = 0; r < rows; r++, to += width, x += stride) {
#if DOT_BF16
        memcpy(to, x, (size_t)columns * sizeof *x);
#else
        for (int64_t c = 0; c < columns; c += W) {
            vfloat values = load_columns(x, c, columns);
            memcpy(to + c, &values, (size_t)(columns - c < W ? columns - c : W) * sizeof *to);
        }
#endif
    }
    memset(to, 0, (size_t)((padded - rows) * width) * sizeof *to);
}

/* x[rows][columns] to [padded / UNIT][to_stride], columns padded with zeros to a multiple of W. */
static inline void pack_across(Unit *to, int64_t to_stride, const Storage *x, int64_t stride,
                               int64_t rows, int64_t padded, int64_t columns) {
    for (int64_t r = 0; r < padded; r += UNIT, to += to_stride)
        for (int64_t c = 0; c < columns; c += W) {
            vfloat values[UNIT];
            for (int u = 0; u < UNIT; u++)
                values[u] =
                    r + u < rows ? load_columns(x + (r + u) * stride, c, columns) : splat(0);
            vunit units = units_across(values);
            memcpy(to + c, &units, sizeof units);
        }
}

/* x[rows][columns] = factor * from[rows][from_stride], whose rows are padded to a multiple of W */
static inline void write_rows(Storage *x, int64_t stride, const float *from, int64_t from_stride,
                              int64_t rows, int64_t columns, float factor) {
    for (int64_t r = 0; r < rows; r++, x += stride, from += from_stride)
        for (int64_t c = 0; c < columns; c += W) {
            vfloat values = vload_f32(from + c) * splat(factor);
            if (c + W <= columns)
                vstore(x + c, values);
            else
                vstore_part(x + c, values, columns - c);
        }
}

#endif
