/* For small functions in headers that C and CUDA C both include: one definition for CPU and GPU. */
#ifndef HEARTH_BASE_HOST_DEVICE_H
#define HEARTH_BASE_HOST_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE static __host__ __device__ __forceinline__
#else
#define HOST_DEVICE static inline
#endif

#endif
