#include "cuda/blocks.h"
#include "reduce.cuh"

/* sums[i] += the sum of partials[i,count]: a block to a sum. */
KERNEL(add_partial_sums, BLOCK_THREADS)(float *sums, const double *partials, int64_t count) {
    __shared__ double parts[WARPS_MOST];
    const double *own = partials + blockIdx.x * count;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK_THREADS) sum += own[i];
    sum = block_sum(sum, parts);
    if (threadIdx.x == 0) sums[blockIdx.x] += (float)sum;
}
EXPORT_KERNEL(add_partial_sums)
