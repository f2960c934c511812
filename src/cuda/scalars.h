/* What changes from step to step, in device memory: so that a captured graph is launched again as it is.
 * Read by C and by CUDA C. */
#ifndef HEARTH_CUDA_SCALARS_H
#define HEARTH_CUDA_SCALARS_H

#include <stdint.h>

/* StepScalars (step/operation.h) with a fixed layout. */
typedef struct CudaScalars {
    float learning_rate, gradient_scale, momentum, weight_decay;
    int64_t step;
    uint64_t seed;
    int64_t position;
} CudaScalars;

#endif
