/* Packing of factors (tile.h), and the way back to storage: W vectors at a time, transposed in
 * registers where the form asks for it. */
#include "cpu/kernels/transpose.h"
#include "cpu/kernels/tile.h"

/* The first `count` rows. */
static inline void store_square(Unit *to, int64_t stride, const vunit rows[W], int64_t count) {
#pragma GCC unroll 16
    for (int i = 0; i < W; i++)
        if (i < count) memcpy(to + i * stride, &rows[i], sizeof rows[i]);
}

void pack_left_along(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                     int64_t columns) {
    prefetch_rows(x, stride, rows, columns);
    const int64_t width = columns / UNIT;
    for (int64_t r = 0; r < rows; r++, to += width, x += stride)
        for (int64_t c = 0; c < width; c += W) {
            const vunit units = load_units_along(x + c * UNIT, columns - c * UNIT);
            if (c + W <= width)
                memcpy(to + c, &units, sizeof units);
            else
                vstore_f32_part((float *)to + c, (vfloat)units, width - c);
        }
    memset(to, 0, (size_t)((padded - rows) * width) * sizeof *to);
}

void pack_right_along(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                      int64_t columns) {
    prefetch_rows(x, stride, rows, columns);
    const int64_t width = columns / UNIT;
    for (int64_t r = 0; r < padded; r += W)
        for (int64_t c = 0; c < width; c += W) {
            vunit square[W];
#pragma GCC unroll 16
            for (int i = 0; i < W; i++)
                square[i] = r + i < rows ? load_units_along(x + (r + i) * stride + c * UNIT,
                                                            columns - c * UNIT)
                                         : (vunit){0};
            transpose_units(square);
            store_square(to + c * padded + r, padded, square, width - c);
        }
}

void pack_right_across(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                       int64_t columns) {
    for (int64_t r = 0; r < padded; r += UNIT, x += UNIT * stride)
        for (int64_t c = 0; c < columns; c += W, to += W) {
            const vunit units =
                r < rows ? load_units_down(x + c, stride, columns - c, rows - r) : (vunit){0};
            memcpy(to, &units, sizeof units);
        }
}

void pack_left_across(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                      int64_t columns) {
    prefetch_rows(x, stride, rows, columns);
    for (int64_t r = 0; r < padded; r += W * UNIT)
        for (int64_t c = 0; c < columns; c += W) {
            vunit square[W];
#pragma GCC unroll 16
            for (int i = 0; i < W; i++) {
                const int64_t row = r + i * UNIT;
                square[i] = row < rows ? load_units_down(x + row * stride + c, stride, columns - c,
                                                         rows - row)
                                       : (vunit){0};
            }
            transpose_units(square);
            store_square(to + (c * padded + r) / UNIT, padded / UNIT, square, columns - c);
        }
}

void write_rows(Storage *x, int64_t stride, const float *from, int64_t from_stride, int64_t rows,
                int64_t columns, float factor) {
    prefetch_rows(x, stride, rows, columns);
    for (int64_t r = 0; r < rows; r++, x += stride, from += from_stride)
        for (int64_t c = 0; c < columns; c += W)
            row_store(x, c, columns, vload_f32(from + c) * splat(factor));
}

void write_transposed(Storage *x, int64_t stride, const float *from, int64_t from_stride,
                      int64_t rows, int64_t columns, const float *factors) {
    prefetch_rows(x, stride, rows, columns);
    for (int64_t r = 0; r < rows; r += W)
        for (int64_t c = 0; c < columns; c += W) {
            const vfloat factor = vload_f32(factors + r);
            vunit square[W];
#pragma GCC unroll 16
            for (int i = 0; i < W; i++)
                square[i] = c + i < columns
                                ? (vunit)(vload_f32(from + (c + i) * from_stride + r) * factor)
                                : (vunit){0};
            transpose_units(square);
#pragma GCC unroll 16
            for (int i = 0; i < W; i++)
                if (r + i < rows) row_store(x + (r + i) * stride, c, columns, (vfloat)square[i]);
        }
}
