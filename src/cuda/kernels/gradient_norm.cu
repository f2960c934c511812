/* The norm of the gradient, in double: the square of an fp32 number is exact there. */
#include "cuda/blocks.h"
#include "cuda/scalars.h"
#include "reduce.cuh"
#include "vectors.cuh"

/* partials[block] = the sum of squares of the block's part of gradient[n] */
KERNEL(gradient_norm_partials, BLOCK_THREADS)
(double *partials, const float *gradient, int64_t n) {
    __shared__ double sums[WARPS_MOST];
    double sum = 0;
    for (int64_t i = ((int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x) * LANES<float>; i < n;
         i += (int64_t)gridDim.x * BLOCK_THREADS * LANES<float>) {
        float x[LANES<float>];
        load(x, gradient + i, n - i);
#pragma unroll
        for (int lane = 0; lane < LANES<float>; lane++) sum += (double)x[lane] * (double)x[lane];
    }
    sum = block_sum(sum, sums);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}
EXPORT_KERNEL(gradient_norm_partials)

/* norm[0] = sqrt(the sum of partials[count]) * gradient_scale: of the mean gradient over the counted
 * targets of the whole optimizer step. One block. */
KERNEL(gradient_norm, BLOCK_THREADS)
(float *norm, const double *partials, int64_t count, const CudaScalars *scalars) {
    __shared__ double sums[WARPS_MOST];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK_THREADS) sum += partials[i];
    sum = block_sum(sum, sums);
    if (threadIdx.x == 0) *norm = (float)(sqrt(sum) * (double)scalars->gradient_scale);
}
EXPORT_KERNEL(gradient_norm)
