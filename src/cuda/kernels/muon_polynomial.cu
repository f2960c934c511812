#include "cuda/blocks.h"
#include "step/operation.h"
#include "vectors.cuh"

/* out[m,m] = a I + b first + c second, a row to a block */
template <class S>
DEVICE void polynomial_row(S *out, const S *first, const S *second, const PolynomialShape &shape) {
    const int64_t m = shape.m, row = blockIdx.x;
    for (int64_t c = threadIdx.x * LANES<S>; c < m; c += blockDim.x * LANES<S>) {
        float x[LANES<S>], y[LANES<S>];
        load(x, first + row * m + c, m - c);
        load(y, second + row * m + c, m - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++)
            x[i] = (c + i == row ? shape.a : 0) + shape.b * x[i] + shape.c * y[i];
        store(out + row * m + c, x, m - c);
    }
}

#define INSTANCE(suffix, S) \
    KERNEL(muon_polynomial_##suffix, BLOCK_THREADS) \
    (S * out, const S *first, const S *second, PolynomialShape shape) { \
        polynomial_row(out, first, second, shape); \
    } \
    EXPORT_KERNEL(muon_polynomial_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
