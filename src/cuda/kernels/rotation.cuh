/* Rotary position embedding (Su et al., arXiv 2104.09864), with halves of a head as the pairs. */
#ifndef HEARTH_CUDA_KERNELS_ROTATION_CUH
#define HEARTH_CUDA_KERNELS_ROTATION_CUH

#include "seam.h"

/* Turns the pairs (x1[i], x2[i]) by the angles whose cosine and sine follow each other; sign: -1 to turn
 * back. */
template <int L>
DEVICE void turn(float (&x1)[L], float (&x2)[L], const float (&cos_sin)[2 * L], float sign) {
#pragma unroll
    for (int i = 0; i < L; i++) {
        const float first = x1[i], second = x2[i];
        const float cosine = cos_sin[2 * i], sine = sign * cos_sin[2 * i + 1];
        x1[i] = first * cosine - second * sine;
        x2[i] = second * cosine + first * sine;
    }
}

#endif
