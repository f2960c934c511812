/* Sums over a warp and over a block, always in the same order. */
#ifndef HEARTH_CUDA_KERNELS_REDUCE_CUH
#define HEARTH_CUDA_KERNELS_REDUCE_CUH

#include "seam.h"

enum { WARPS_MOST = 32 }; /* in a block */

template <class T> DEVICE T warp_sum(T value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(FULL_WARP, value, distance);
    return value;
}

DEVICE float warp_max(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, distance));
    return value;
}

/* Every thread of the block calls it and gets the sum. The block is made of whole warps; `sums` is shared
 * memory that nothing else uses. */
template <class T> DEVICE T block_sum(T value, T (&sums)[WARPS_MOST]) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_sum(value);
    if (lane == 0) sums[warp] = value;
    __syncthreads();
    value = warp_sum(lane < warps ? sums[lane] : T(0));
    __syncthreads(); /* before the next sum */
    return value;
}

#endif
