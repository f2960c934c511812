/* Packing of factors (tile.h), and the way back to storage. */
#include "cpu/kernels/tile.h"

/* Transposes W x W numbers. Zipping row i with row i + W/2 into rows 2i and 2i + 1 moves the top
 * bit of the row number to the bottom of the column number; log2(W) times exchange the two. */
static void transpose_square(Unit *to, int64_t to_stride, const Unit *from, int64_t from_stride) {
    vunit rows[W], zipped[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; i++) memcpy(&rows[i], from + i * from_stride, sizeof rows[i]);
#pragma GCC unroll 4
    for (int round = 1; round < W; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < W / 2; i++)
            vzip(rows[i], rows[i + W / 2], &zipped[2 * i], &zipped[2 * i + 1]);
#pragma GCC unroll 16
        for (int i = 0; i < W; i++) rows[i] = zipped[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; i++) memcpy(to + i * to_stride, &rows[i], sizeof rows[i]);
}

void transpose(Unit *to, int64_t to_stride, const Unit *from, int64_t from_stride, int64_t rows,
               int64_t columns) {
    const int64_t whole_rows = rows / W * W, whole_columns = columns / W * W;
    for (int64_t r = 0; r < whole_rows; r += W)
        for (int64_t c = 0; c < whole_columns; c += W)
            transpose_square(to + c * to_stride + r, to_stride, from + r * from_stride + c,
                             from_stride);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            to[c * to_stride + r] = from[r * from_stride + c];
}

void pack_along(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                int64_t columns) {
    const int64_t width = columns / UNIT;
    for (int64_t r = 0; r < rows; r++, to += width, x += stride) {
#if DOT_BF16
        memcpy(to, x, (size_t)columns * sizeof *x);
#else
        for (int64_t c = 0; c < columns; c += W) {
            const vfloat values = load_columns(x, c, columns);
            memcpy(to + c, &values, (size_t)(columns - c < W ? columns - c : W) * sizeof *to);
        }
#endif
    }
    memset(to, 0, (size_t)((padded - rows) * width) * sizeof *to);
}

void pack_across(Unit *to, int64_t to_stride, const Storage *x, int64_t stride, int64_t rows,
                 int64_t padded, int64_t columns) {
    for (int64_t r = 0; r < padded; r += UNIT, to += to_stride)
        for (int64_t c = 0; c < columns; c += W) {
            vfloat values[UNIT];
            for (int u = 0; u < UNIT; u++)
                values[u] =
                    r + u < rows ? load_columns(x + (r + u) * stride, c, columns) : splat(0);
            const vunit units = units_across(values);
            memcpy(to + c, &units, sizeof units);
        }
}

void write_rows(Storage *x, int64_t stride, const float *from, int64_t from_stride, int64_t rows,
                int64_t columns, float factor) {
    for (int64_t r = 0; r < rows; r++, x += stride, from += from_stride)
        for (int64_t c = 0; c < columns; c += W) {
            const vfloat values = vload_f32(from + c) * splat(factor);
            if (c + W <= columns)
                vstore(x + c, values);
            else
                vstore_part(x + c, values, columns - c);
        }
}
