/* SwiGLU (Shazeer, arXiv 2002.05202): silu(gate) * up, silu(g) = g * sigmoid(g); a row to a block. */
#include "cuda/blocks.h"
#include "exponential.cuh"
#include "vectors.cuh"

/* gate_up[N,2F]: gate then up. out[N,F] */
template <class S> DEVICE void swiglu_forward(S *out, const S *gate_up, int64_t F) {
    const S *gate = gate_up + blockIdx.x * 2 * F, *up = gate + F;
    for (int64_t f = threadIdx.x * LANES<S>; f < F; f += blockDim.x * LANES<S>) {
        float g[LANES<S>], u[LANES<S>];
        load(g, gate + f, F - f);
        load(u, up + f, F - f);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) u[i] *= g[i] * sigmoid(g[i]);
        store(out + blockIdx.x * F + f, u, F - f);
    }
}

/* silu'(g) = s (1 + g (1 - s)) with s = sigmoid(g). dgate_up may be gate_up. */
template <class S>
DEVICE void swiglu_backward(S *dgate_up, const S *dout, const S *gate_up, int64_t F) {
    const S *gate = gate_up + blockIdx.x * 2 * F, *up = gate + F, *above = dout + blockIdx.x * F;
    S *dgate = dgate_up + blockIdx.x * 2 * F, *dup = dgate + F;
    for (int64_t f = threadIdx.x * LANES<S>; f < F; f += blockDim.x * LANES<S>) {
        float g[LANES<S>], u[LANES<S>], d[LANES<S>];
        load(g, gate + f, F - f);
        load(u, up + f, F - f);
        load(d, above + f, F - f);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) {
            const float s = sigmoid(g[i]), slope = s * (1 + g[i] * (1 - s));
            u[i] *= d[i] * slope;
            d[i] *= g[i] * s;
        }
        store(dgate + f, u, F - f);
        store(dup + f, d, F - f);
    }
}

#define INSTANCE(suffix, S) \
    KERNEL(swiglu_forward_##suffix, BLOCK_THREADS)(S * out, const S *gate_up, int64_t F) { \
        swiglu_forward(out, gate_up, F); \
    } \
    EXPORT_KERNEL(swiglu_forward_##suffix) \
    KERNEL(swiglu_backward_##suffix, BLOCK_THREADS) \
    (S * dgate_up, const S *dout, const S *gate_up, int64_t F) { \
        swiglu_backward(dgate_up, dout, gate_up, F); \
    } \
    EXPORT_KERNEL(swiglu_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
