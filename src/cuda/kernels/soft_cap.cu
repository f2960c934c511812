#include "cuda/blocks.h"
#include "soft_cap.cuh"
#include "vectors.cuh"

/* out[n] = cap * tanh(x[n] / cap). out may be x. */
KERNEL(soft_cap, BLOCK_THREADS)(float *out, const float *x, int64_t n, float cap) {
    const int64_t at = ((int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x) * LANES<float>;
    float value[LANES<float>];
    if (at >= n) return;
    load(value, x + at, n - at);
#pragma unroll
    for (int i = 0; i < LANES<float>; i++) value[i] = soft_cap(value[i], cap);
    store(out + at, value, n - at);
}
EXPORT_KERNEL(soft_cap)
