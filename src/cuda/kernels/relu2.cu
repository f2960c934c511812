/* The square of ReLU (So et al., arXiv 2109.08668), 16 bytes to a thread. */
#include "cuda/blocks.h"
#include "vectors.cuh"

template <class S> DEVICE int64_t first_element() {
    return ((int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x) * LANES<S>;
}

DEVICE float positive_part(float x) {
    return x < 0 ? 0 : x; /* NaN stays */
}

/* out = max(x, 0)^2, of n elements */
template <class S> DEVICE void relu2_forward(S *out, const S *x, int64_t n) {
    const int64_t at = first_element<S>();
    float value[LANES<S>];
    load(value, x + at, n - at);
#pragma unroll
    for (int i = 0; i < LANES<S>; i++) value[i] = positive_part(value[i]) * positive_part(value[i]);
    store(out + at, value, n - at);
}

/* dx = 2 max(x, 0) dout; dx may be either of them. */
template <class S> DEVICE void relu2_backward(S *dx, const S *dout, const S *x, int64_t n) {
    const int64_t at = first_element<S>();
    float value[LANES<S>], above[LANES<S>];
    load(value, x + at, n - at);
    load(above, dout + at, n - at);
#pragma unroll
    for (int i = 0; i < LANES<S>; i++) value[i] = 2 * positive_part(value[i]) * above[i];
    store(dx + at, value, n - at);
}

#define INSTANCE(suffix, S) \
    KERNEL(relu2_forward_##suffix, BLOCK_THREADS)(S * out, const S *x, int64_t n) { \
        relu2_forward(out, x, n); \
    } \
    EXPORT_KERNEL(relu2_forward_##suffix) \
    KERNEL(relu2_backward_##suffix, BLOCK_THREADS) \
    (S * dx, const S *dout, const S *x, int64_t n) { \
        relu2_backward(dx, dout, x, n); \
    } \
    EXPORT_KERNEL(relu2_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
