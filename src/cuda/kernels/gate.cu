/* Gates of a token: the logistic function of a product with its first channels (what they compute is said at
 * GateShape). */
#include "cuda/blocks.h"
#include "exponential.cuh"
#include "step/operation.h"
#include "vectors.cuh"

/* x[channels] . weight[channels] */
template <class S> DEVICE float dot(const S *x, const S *weight, int64_t channels) {
    float sum = 0;
    for (int64_t c = 0; c < channels; c += LANES<S>) {
        float value[LANES<S>], factor[LANES<S>];
        load(value, x + c, channels - c);
        load(factor, weight + c, channels - c);
#pragma unroll
        for (int i = 0; i < LANES<S>; i++) sum += value[i] * factor[i];
    }
    return sum;
}

/* gates[N,gates], one to a thread */
template <class S>
DEVICE void gate_forward(float *gates, const S *x, const S *weight, const GateShape &shape) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i >= shape.N * shape.gates) return;
    const int64_t n = i / shape.gates, gate = i % shape.gates;
    const float z = dot(x + n * shape.C, weight + gate * shape.channels, shape.channels);
    gates[i] = shape.factor * sigmoid(z);
}

/* What the gradient of a gate is to its product: factor s (1 - s) with s = gate / factor. */
DEVICE float slope_of(float gate, float factor) {
    return gate * (1 - gate / factor);
}

/* Tokens of a block. */
typedef struct Range {
    int64_t first, end;
} Range;

/* dx[n,c] += the sum over gates of dz weight, LANES channels of a token to a thread */
template <class S>
DEVICE void add_to_input(S *dx, const float *dgates, const float *gates, const S *weight,
                         const GateShape &shape, Range tokens) {
    const int64_t vectors = (shape.channels + LANES<S> - 1) / LANES<S>;
    for (int64_t i = threadIdx.x; i < (tokens.end - tokens.first) * vectors; i += BLOCK_THREADS) {
        const int64_t n = tokens.first + i / vectors, c = i % vectors * LANES<S>;
        const int64_t count = shape.channels - c;
        float sum[LANES<S>];
        load(sum, dx + n * shape.C + c, count);
        for (int64_t gate = 0; gate < shape.gates; gate++) {
            const int64_t at = n * shape.gates + gate;
            const float dz = dgates[at] * slope_of(gates[at], shape.factor);
            float factor[LANES<S>];
            load(factor, weight + gate * shape.channels + c, count);
#pragma unroll
            for (int lane = 0; lane < LANES<S>; lane++) sum[lane] += dz * factor[lane];
        }
        store(dx + n * shape.C + c, sum, count);
    }
}

/* partials[gates*channels,blocks]: the block's part of the weight's gradient, the sum over tokens of dz x. */
template <class S>
DEVICE void sum_weights(double *partials, const float *dgates, const float *gates, const S *x,
                        const GateShape &shape, Range tokens) {
    for (int64_t i = threadIdx.x; i < shape.gates * shape.channels; i += BLOCK_THREADS) {
        const int64_t gate = i / shape.channels, c = i % shape.channels;
        float sum = 0;
        for (int64_t n = tokens.first; n < tokens.end; n++) {
            const int64_t at = n * shape.gates + gate;
            sum += dgates[at] * slope_of(gates[at], shape.factor) * to_float(x[n * shape.C + c]);
        }
        partials[i * gridDim.x + blockIdx.x] = (double)sum;
    }
}

template <class S>
DEVICE void gate_backward(S *dx, double *partials, const float *dgates, const float *gates,
                          const S *x, const S *weight, const GateShape &shape) {
    const int64_t share = (shape.N + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    const Range tokens = {first, min(first + share, shape.N)};
    add_to_input(dx, dgates, gates, weight, shape, tokens);
    sum_weights(partials, dgates, gates, x, shape, tokens);
}

#define INSTANCE(suffix, S) \
    KERNEL(gate_forward_##suffix, BLOCK_THREADS) \
    (float *gates, const S *x, const S *weight, GateShape shape) { \
        gate_forward(gates, x, weight, shape); \
    } \
    EXPORT_KERNEL(gate_forward_##suffix) \
    KERNEL(gate_backward_##suffix, BLOCK_THREADS) \
    (S * dx, double *partials, const float *dgates, const float *gates, const S *x, \
     const S *weight, GateShape shape) { \
        gate_backward(dx, partials, dgates, gates, x, weight, shape); \
    } \
    EXPORT_KERNEL(gate_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
