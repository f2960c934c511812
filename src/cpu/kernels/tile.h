/* Small matrix products of packed operands, and their packing. A product sums over an index, and a
 * factor is packed in Units of that index (dot.h): [m][k] on the left, [k][n] on the right. From
 * storage x[rows][columns] there are four forms:
 *
 *     left,  summed over columns   [padded][columns / UNIT]   pack_left_along
 *     right, summed over columns   [columns / UNIT][padded]   pack_right_along
 *     right, summed over rows      [padded / UNIT][columns]   pack_right_across
 *     left,  summed over rows      [columns][padded / UNIT]   pack_left_across
 *
 * Rows from `rows` on are zeros; `padded` is a multiple of W * UNIT. */
#ifndef HEARTH_CPU_KERNELS_TILE_H
#define HEARTH_CPU_KERNELS_TILE_H

#include <stdbool.h>

#include "cpu/kernels/dot.h"
#include "cpu/kernels/row.h"

/* Each instance has its own copy of these functions. */
#define product KERNEL(product)
#define pack_left_along KERNEL(pack_left_along)
#define pack_right_along KERNEL(pack_right_along)
#define pack_right_across KERNEL(pack_right_across)
#define pack_left_across KERNEL(pack_left_across)
#define write_rows KERNEL(write_rows)
#define write_transposed KERNEL(write_transposed)

typedef struct Factor {
    const Unit *units;
    int64_t stride; /* in units, between rows of the packed form */
} Factor;

/* c[m][n] = (add ? c : 0) + a[m][k] b[k][n], k in units; m is even, n a multiple of W, whatever the
 * sizes each number is summed in the order of k. */
void product(float *c, int64_t c_stride, Factor a, Factor b, int64_t m, int64_t n, int64_t k,
             bool add);

void pack_left_along(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                     int64_t columns);
void pack_right_along(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                      int64_t columns);
/* columns padded with zeros to a multiple of W */
void pack_right_across(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                       int64_t columns);
void pack_left_across(Unit *to, const Storage *x, int64_t stride, int64_t rows, int64_t padded,
                      int64_t columns);

/* x[rows][columns] = factor * from[rows][from_stride], whose rows are padded to a multiple of W. */
void write_rows(Storage *x, int64_t stride, const float *from, int64_t from_stride, int64_t rows,
                int64_t columns, float factor);

/* x[r][c] = factors[r] * from[c][r], for rows r and columns c of x; the rows of `from`, and factors,
 * are padded to a multiple of W. */
void write_transposed(Storage *x, int64_t stride, const float *from, int64_t from_stride,
                      int64_t rows, int64_t columns, const float *factors);

#endif
