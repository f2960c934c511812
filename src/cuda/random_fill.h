/* Random numbers in device memory, for measuring: zeros multiply at a clock that real ones do not reach. */
#ifndef HEARTH_CUDA_RANDOM_FILL_H
#define HEARTH_CUDA_RANDOM_FILL_H

#include "cuda/gpu.h"

/* Queues it; normals as bf16, two of which read as fp32 are a number of the same size. */
bool random_fill(const Gpu *gpu, CUdeviceptr memory, int64_t bytes, CUstream stream, Error *error);

#endif
