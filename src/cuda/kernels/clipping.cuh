/* What the norm of the whole gradient means to an optimizer. */
#ifndef HEARTH_CUDA_KERNELS_CLIPPING_CUH
#define HEARTH_CUDA_KERNELS_CLIPPING_CUH

#include "seam.h"

/* A gradient that is not finite changes nothing. */
DEVICE bool is_dropped(float norm) {
    return !(fabsf(norm) < INFINITY);
}

/* What gradients are multiplied by: gradient_scale, and less where the norm is above clip_norm (0: no
 * clipping). */
DEVICE float clipped_scale(float gradient_scale, float norm, float clip_norm) {
    return clip_norm > 0 && norm > clip_norm ? gradient_scale * (clip_norm / (norm + 1e-6f))
                                             : gradient_scale;
}

#endif
