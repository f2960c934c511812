/* What the matrix products share: a register tile of ROWS x PANEL sums, the packing of B into panels
 * of PANEL columns, and the units they are made of (dot.h). A panel is [steps][PANEL] units; what lies
 * behind its last column is never stored, and behind the last number of a sum are zeros. */
#ifndef HEARTH_CPU_KERNELS_PANEL_H
#define HEARTH_CPU_KERNELS_PANEL_H

#include "base/integer.h"
#include "cpu/kernels/dot.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"
#include "cpu/kernels/transpose.h"

/* As many sums as the registers hold beside the factors, and enough to hide the latency of dot(). */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { ROWS = 8 };
#else
enum { ROWS = 4 };
#endif
enum { VECTORS = 3, PANEL = VECTORS * W };

/* ---- the register tile ---- */

/* Unit k of row i is row[i][k * step]. */
typedef struct Left {
    const Unit *row[ROWS];
    int64_t step;
} Left;

/* `vectors` is a constant where this is inlined. */
INLINE void tile_vectors(float *to, const float *from, int64_t stride, const Left *left,
                         const Unit *panel, int vectors, int64_t steps) {
    vfloat sums[ROWS][VECTORS];
    const Unit *row[ROWS];
    const int64_t step = left->step;
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        row[i] = left->row[i];
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++)
            sums[i][j] = from ? vload_f32(from + i * stride + j * W) : splat(0);
    }
    for (int64_t k = 0; k < steps; k++, panel += PANEL) {
        vunit right[VECTORS];
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) memcpy(&right[j], panel + j * W, sizeof right[j]);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            const vunit one = row[i][k * step] - (vunit){0};
#pragma GCC unroll 3
            for (int j = 0; j < vectors; j++) sums[i][j] = dot(sums[i][j], one, right[j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) vstore_f32(to + i * stride + j * W, sums[i][j]);
}

/* to[ROWS][stride] = from (NULL: 0) + the products over `steps` units, for the vectors that hold the
 * first `columns` of the panel. Units are added one after the other, so an element has the same bits
 * in whichever tile it falls. */
static inline void tile_product(float *to, const float *from, int64_t stride, const Left *left,
                                const Unit *panel, int64_t columns, int64_t steps) {
    if (columns > 2 * W)
        tile_vectors(to, from, stride, left, panel, 3, steps);
    else if (columns > W)
        tile_vectors(to, from, stride, left, panel, 2, steps);
    else
        tile_vectors(to, from, stride, left, panel, 1, steps);
}

/* ---- packing ---- */

/* A panel of x[columns][stride], K numbers of each row. Rows behind the last one repeat it. */
static inline void pack_panel_along(Unit *panel, const Storage *x, int64_t stride, int64_t columns,
                                    int64_t K) {
    const int64_t steps = divide_up(K, UNIT);
    for (int64_t n = 0; n < columns; n += W)
        for (int64_t k = 0; k < steps; k += W) {
            vunit units[W];
#pragma GCC unroll 16
            for (int i = 0; i < W; i++)
                units[i] = load_units_along(x + smaller(n + i, columns - 1) * stride + k * UNIT,
                                            K - k * UNIT);
            transpose_units(units);
#pragma GCC unroll 16
            for (int i = 0; i < W; i++)
                if (k + i < steps) memcpy(panel + (k + i) * PANEL + n, &units[i], sizeof units[i]);
        }
}

/* Panels, `size` units apart, of x[K][stride], the first `columns` of each row. A row at a time, and
 * rows are asked for ahead: they lie too far apart for the processor to foresee. */
static inline void pack_panels_down(Unit *panels, int64_t size, const Storage *x, int64_t stride,
                                    int64_t columns, int64_t K) {
    enum { ROWS_AHEAD = 16 };
    for (int64_t k = 0; k < K; k += UNIT, panels += PANEL, x += UNIT * stride) {
        prefetch_rows(x + ROWS_AHEAD * stride, stride, UNIT, columns);
        for (int64_t n = 0; n < columns; n += W) {
            const vunit units = load_units_down(x + n, stride, columns - n, K - k);
            memcpy(panels + n / PANEL * size + n % PANEL, &units, sizeof units);
        }
    }
}

#endif
