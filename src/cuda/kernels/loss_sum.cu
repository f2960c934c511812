#include "cuda/blocks.h"
#include "reduce.cuh"

/* total[0] += the sum of losses[n], in double. One block. */
KERNEL(loss_sum, WIDE_BLOCK_THREADS)(double *total, const float *losses, int64_t n) {
    __shared__ double sums[WARPS_MOST];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += WIDE_BLOCK_THREADS) sum += (double)losses[i];
    sum = block_sum(sum, sums);
    if (threadIdx.x == 0) *total += sum;
}
EXPORT_KERNEL(loss_sum)
