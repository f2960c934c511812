/* Attention, backward: what each query needs of its row of scores. Behind the last query of a row of the
 * batch come queries whose lse is infinite, so that their weights are zero. */
#include "attention_backward.cuh"

/* statistics[B,H,T aligned]: lse in powers of two, delta = rowsum(dout o out); dout[N,H*D], out[N,H*D],
 * lse[B,H,T]. A grid of H * B by tiles of T aligned; 16 lanes for each query. */
KERNEL(attention_backward_delta_bf16, BACKWARD_DELTA_THREADS)
(float2 *statistics, const Bf16 *dout, const Bf16 *out, const float *lse, int T, int H, int D) {
    const int64_t b = blockIdx.x / H, h = blockIdx.x % H;
    const int t = blockIdx.y * BACKWARD_DELTA_QUERIES + threadIdx.x / 16;
    const int d = threadIdx.x % 16 * LANES<Bf16>;
    const int64_t at = ((b * T + t) * H + h) * D + d;
    const int columns = t < T ? D - d : 0;
    float x[LANES<Bf16>], y[LANES<Bf16>], delta = 0;
    load(x, dout + at, columns);
    load(y, out + at, columns);
#pragma unroll
    for (int i = 0; i < LANES<Bf16>; i++) delta = fmaf(x[i], y[i], delta);
#pragma unroll
    for (int lanes = 8; lanes > 0; lanes /= 2) delta += __shfl_xor_sync(FULL_WARP, delta, lanes);
    const int64_t row = blockIdx.x;
    if (d == 0)
        statistics[row * BACKWARD_ALIGNED(T) + t] =
            make_float2(t < T ? lse[row * T + t] * LOG2_E : INFINITY, delta);
}
EXPORT_KERNEL(attention_backward_delta_bf16)
