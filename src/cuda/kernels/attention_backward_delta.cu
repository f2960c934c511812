/* Attention, backward: what each query needs of its row of scores. Behind the last query of a row of the
 * batch come queries whose lse is infinite, so that their weights are zero. */
#include "attention_backward.cuh"

/* Eight bf16 of each: the sum of their products. */
DEVICE float dot8(uint4 x, uint4 y) {
    const uint32_t xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum = fmaf(__uint_as_float(xs[i] << 16), __uint_as_float(ys[i] << 16), sum);
        sum = fmaf(__uint_as_float(xs[i] & 0xffff0000u), __uint_as_float(ys[i] & 0xffff0000u), sum);
    }
    return sum;
}

/* statistics[B,H,T aligned]: lse in powers of two, delta = rowsum(dout o out); dout[N,H*D], out[N,H*D],
 * lse[B,H,T]. A grid of H * B by tiles of T aligned; 16 lanes for each query. */
KERNEL(attention_backward_delta_bf16, BACKWARD_DELTA_THREADS)
(float2 *statistics, const Bf16 *dout, const Bf16 *out, const float *lse, int T, int H, int D) {
    const int64_t b = blockIdx.x / H, h = blockIdx.x % H;
    const int t = blockIdx.y * BACKWARD_DELTA_QUERIES + threadIdx.x / 16;
    const int d = threadIdx.x % 16 * 8;
    const int64_t at = ((b * T + t) * H + h) * D + d;
    float delta = 0;
    if (t < T && d < D) delta = dot8(*(const uint4 *)(dout + at), *(const uint4 *)(out + at));
#pragma unroll
    for (int lanes = 8; lanes > 0; lanes /= 2) delta += __shfl_xor_sync(FULL_WARP, delta, lanes);
    const int64_t row = blockIdx.x;
    if (d == 0)
        statistics[row * BACKWARD_ALIGNED(T) + t] =
            make_float2(t < T ? lse[row * T + t] * LOG2_E : INFINITY, delta);
}
EXPORT_KERNEL(attention_backward_delta_bf16)
