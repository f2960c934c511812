/* The device that the tests of wrappers run on, with the kernels of wrappers.cu. */
#ifndef HEARTH_TESTS_CUDA_WRAPPERS_DEVICE_H
#define HEARTH_TESTS_CUDA_WRAPPERS_DEVICE_H

#include "cuda/driver.h"
#include "support.h"

enum { LANES = 32 };

/* Ends the program with 77 where there is no driver. image: the file with the kernels. */
void device_open(const char *image);
void device_close(void);

int device_capability(void); /* 120 for 12.0 */

/* Memory of the device: with data in it, or as it comes; release() it. */
CUdeviceptr upload(const void *data, size_t bytes);
CUdeviceptr unwritten(size_t bytes);
void download(void *data, CUdeviceptr memory, size_t bytes);
void release(CUdeviceptr memory);

/* Queues a kernel with one warp. */
void launch_warp(const char *kernel, unsigned shared_bytes, void **arguments);

/* A random number in [0, bound). */
int below(int bound);

#endif
