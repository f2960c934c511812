#ifndef HEARTH_CUDA_KERNELS_EXPONENTIAL_CUH
#define HEARTH_CUDA_KERNELS_EXPONENTIAL_CUH

#include "seam.h"

#define LOG2_E 1.44269504f /* e^x = 2^(x LOG2_E) */

/* e^x with a relative error below 2^-22 + |x| 2^-23; 0 below -87.3, infinity above 88.7; NaN stays. */
DEVICE float exponential(float x) {
    return exp2_approximate(x * LOG2_E);
}

/* silu(x) = x * sigmoid(x) */
DEVICE float sigmoid(float x) {
    return 1 / (1 + exponential(-x));
}

#endif
