#ifndef HEARTH_CUDA_KERNELS_SOFT_CAP_CUH
#define HEARTH_CUDA_KERNELS_SOFT_CAP_CUH

#include "seam.h"

DEVICE float soft_cap(float x, float cap) {
    return cap * tanhf(x / cap);
}

/* The slope of soft_cap() where it is y: 1 - tanh^2. */
DEVICE float soft_cap_slope(float y, float cap) {
    const float tangent = y / cap;
    return 1 - tangent * tangent;
}

#endif
