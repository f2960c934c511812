/* The GPU that hearth uses: the first one the driver shows (CUDA_VISIBLE_DEVICES chooses). Opened once
 * and kept until the program ends. */
#ifndef HEARTH_CUDA_GPU_H
#define HEARTH_CUDA_GPU_H

#include <stdint.h>

#include "cuda/driver.h"

enum { KERNEL_MODULES_MOST = 32 };

typedef struct Gpu {
    CudaDriver driver;
    CublasLt cublaslt;
    cublasLtHandle_t cublaslt_handle;
    CUdevice device;
    CUcontext context;
    char name[96];                /* "NVIDIA GeForce RTX 5090" */
    int capability;               /* 120 for 12.0 */
    int driver_version;           /* 13000 for CUDA 13.0 */
    int multiprocessors;          /* streaming multiprocessors */
    int clock, memory_clock, bus; /* kHz, kHz, bits */
    int64_t memory;               /* bytes */
    bool unified; /* the processor's own memory: nothing has to be copied over a bus */
    CUmodule modules[KERNEL_MODULES_MOST];
    int module_count;
} Gpu;

/* NULL with an error that says why there is none and what to do. */
const Gpu *gpu_open(Error *error);

/* A kernel by its name; an error when this build has none of that name. */
bool gpu_find_kernel(const Gpu *gpu, const char *name, CUfunction *function, Error *error);

/* Makes the GPU's context the calling thread's: once for each thread that uses it. */
bool gpu_use(const Gpu *gpu, Error *error);

#endif
