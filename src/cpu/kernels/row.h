/* Walking a row of C numbers a vector at a time, the last one possibly in part:
 *
 *     for (int64_t c = 0; c < C; c += W) row_store(out, c, C, 2 * row_load(x, c, C));
 *
 * Lanes beyond the end are loaded as zero and not stored. Rows follow each other in memory,
 * and loads ask for what lies AHEAD: hardware prefetching starts anew at each page, and where a
 * vector takes many instructions it comes too late. */
#ifndef HEARTH_CPU_KERNELS_ROW_H
#define HEARTH_CPU_KERNELS_ROW_H

#include "cpu/vector.h"

enum { AHEAD = 2048 }; /* bytes; a compromise between kernels, measured on Zen 5 */

/* Without asking ahead, for rows that do not follow each other. */
static inline vfloat load_columns(const Storage *row, int64_t c, int64_t columns) {
    return c + W <= columns ? vload(row + c) : vload_part(row + c, columns - c);
}

/* Asks for all rows of x[rows][stride] at once: where they lie far apart, no hardware guesses where the
 * next one is. */
static inline void prefetch_rows(const Storage *x, int64_t stride, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; r++, x += stride)
        for (int64_t c = 0; c < columns; c += 64 / (int64_t)sizeof *x) __builtin_prefetch(x + c);
}

static inline vfloat row_load(const Storage *row, int64_t c, int64_t C) {
    __builtin_prefetch((const char *)(row + c) + AHEAD);
    return load_columns(row, c, C);
}

static inline void row_store(Storage *row, int64_t c, int64_t C, vfloat x) {
    if (c + W <= C)
        vstore(row + c, x);
    else
        vstore_part(row + c, x, C - c);
}

/* Past the caches, for what is not read soon. */
static inline void row_stream(Storage *row, int64_t c, int64_t C, vfloat x) {
    if (c + W <= C)
        vstream(row + c, x);
    else
        vstore_part(row + c, x, C - c);
}

static inline vfloat row_load_f32(const float *row, int64_t c, int64_t C) {
    __builtin_prefetch((const char *)(row + c) + AHEAD);
    return c + W <= C ? vload_f32(row + c) : vload_f32_part(row + c, C - c);
}

static inline void row_store_f32(float *row, int64_t c, int64_t C, vfloat x) {
    if (c + W <= C)
        vstore_f32(row + c, x);
    else
        vstore_f32_part(row + c, x, C - c);
}

#endif
