/* Transposes W vectors of W units in registers. */
#ifndef HEARTH_CPU_KERNELS_TRANSPOSE_H
#define HEARTH_CPU_KERNELS_TRANSPOSE_H

#include "cpu/kernels/dot.h"

/* Zipping row i with row i + W/2 into rows 2i and 2i + 1 moves the top bit of the row number to the
 * bottom of the column number; log2(W) times exchange the two. */
INLINE void transpose_units(vunit rows[W]) {
    vunit zipped[W];
#pragma GCC unroll 4
    for (int round = 1; round < W; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < W / 2; i++)
            vzip(rows[i], rows[i + W / 2], &zipped[2 * i], &zipped[2 * i + 1]);
#pragma GCC unroll 16
        for (int i = 0; i < W; i++) rows[i] = zipped[i];
    }
}

#endif
