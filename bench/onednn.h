/* oneDNN's matmul alone, as the bar that any matmul on this processor is held to. */
#ifndef HEARTH_BENCH_ONEDNN_H
#define HEARTH_BENCH_ONEDNN_H

#include "base/error.h"
#include "step/operation.h"

typedef struct ProductTypes {
    Dtype out, a, b;
} ProductTypes;

/* A prepared product on operands of its own, filled with small numbers. */
typedef struct OnednnMatmul OnednnMatmul;

/* packed: a and b lie in the layout that oneDNN likes best, reordered beforehand; otherwise they are
 * plain row-major (or transposed, as the shape says). NULL with an error: no oneDNN here, or no such
 * product. */
OnednnMatmul *onednn_create(MatmulShape shape, ProductTypes types, bool packed, Error *error);
void onednn_free(OnednnMatmul *matmul);

/* Runs it once and returns the seconds, or -1. */
double onednn_run(OnednnMatmul *matmul);

#endif
