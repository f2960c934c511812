/* NVIDIA's libraries as tables of functions, opened at run time: hearth links none of them, so one
 * program runs with and without a GPU. The names are pinned to what the oldest driver supported
 * (CUDA 12.8: sm_120) exports, not to what this toolkit's headers rename them to. */
#ifndef HEARTH_CUDA_DRIVER_H
#define HEARTH_CUDA_DRIVER_H

#include <cublasLt.h>
#include <cuda.h>

#include "base/error.h"

/* X(member, exported name, declaration in cuda.h that has its type) */
#define CUDA_FUNCTIONS(X) \
    X(init, "cuInit", cuInit) \
    X(driver_version, "cuDriverGetVersion", cuDriverGetVersion) \
    X(error_name, "cuGetErrorName", cuGetErrorName) \
    X(error_string, "cuGetErrorString", cuGetErrorString) \
    X(device_count, "cuDeviceGetCount", cuDeviceGetCount) \
    X(device_get, "cuDeviceGet", cuDeviceGet) \
    X(device_name, "cuDeviceGetName", cuDeviceGetName) \
    X(device_attribute, "cuDeviceGetAttribute", cuDeviceGetAttribute) \
    X(device_memory, "cuDeviceTotalMem_v2", cuDeviceTotalMem_v2) \
    X(device_bus_id, "cuDeviceGetPCIBusId", cuDeviceGetPCIBusId) \
    X(context_retain, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain) \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", cuDevicePrimaryCtxRelease_v2) \
    X(context_set, "cuCtxSetCurrent", cuCtxSetCurrent) \
    X(memory_info, "cuMemGetInfo_v2", cuMemGetInfo_v2) \
    X(allocate, "cuMemAlloc_v2", cuMemAlloc_v2) \
    X(allocate_managed, "cuMemAllocManaged", cuMemAllocManaged) \
    X(release, "cuMemFree_v2", cuMemFree_v2) \
    X(allocate_host, "cuMemHostAlloc", cuMemHostAlloc) \
    X(release_host, "cuMemFreeHost", cuMemFreeHost) \
    X(copy_in, "cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync_v2) \
    X(copy_out, "cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync_v2) \
    X(copy_within, "cuMemcpyDtoDAsync_v2", cuMemcpyDtoDAsync_v2) \
    X(fill_bytes, "cuMemsetD8Async", cuMemsetD8Async) \
    X(stream_create, "cuStreamCreate", cuStreamCreate) \
    X(stream_destroy, "cuStreamDestroy_v2", cuStreamDestroy_v2) \
    X(stream_wait, "cuStreamSynchronize", cuStreamSynchronize) \
    X(stream_wait_event, "cuStreamWaitEvent", cuStreamWaitEvent) \
    X(capture_begin, "cuStreamBeginCapture_v2", cuStreamBeginCapture_v2) \
    X(capture_end, "cuStreamEndCapture", cuStreamEndCapture) \
    X(event_create, "cuEventCreate", cuEventCreate) \
    X(event_destroy, "cuEventDestroy_v2", cuEventDestroy_v2) \
    X(event_record, "cuEventRecord", cuEventRecord) \
    X(event_wait, "cuEventSynchronize", cuEventSynchronize) \
    X(event_elapsed, "cuEventElapsedTime", cuEventElapsedTime_v2) \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags) \
    X(graph_launch, "cuGraphLaunch", cuGraphLaunch) \
    X(graph_destroy, "cuGraphDestroy", cuGraphDestroy) \
    X(graph_exec_destroy, "cuGraphExecDestroy", cuGraphExecDestroy) \
    X(module_load, "cuModuleLoadData", cuModuleLoadData) \
    X(module_unload, "cuModuleUnload", cuModuleUnload) \
    X(module_function, "cuModuleGetFunction", cuModuleGetFunction) \
    X(function_set, "cuFuncSetAttribute", cuFuncSetAttribute) \
    X(launch, "cuLaunchKernel", cuLaunchKernel)

#define CUBLASLT_FUNCTIONS(X) \
    X(version, "cublasLtGetVersion", cublasLtGetVersion) \
    X(status_string, "cublasLtGetStatusString", cublasLtGetStatusString) \
    X(create, "cublasLtCreate", cublasLtCreate) \
    X(destroy, "cublasLtDestroy", cublasLtDestroy) \
    X(desc_create, "cublasLtMatmulDescCreate", cublasLtMatmulDescCreate) \
    X(desc_destroy, "cublasLtMatmulDescDestroy", cublasLtMatmulDescDestroy) \
    X(desc_set, "cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute) \
    X(layout_create, "cublasLtMatrixLayoutCreate", cublasLtMatrixLayoutCreate) \
    X(layout_destroy, "cublasLtMatrixLayoutDestroy", cublasLtMatrixLayoutDestroy) \
    X(layout_set, "cublasLtMatrixLayoutSetAttribute", cublasLtMatrixLayoutSetAttribute) \
    X(preference_create, "cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate) \
    X(preference_destroy, "cublasLtMatmulPreferenceDestroy", cublasLtMatmulPreferenceDestroy) \
    X(preference_set, "cublasLtMatmulPreferenceSetAttribute", \
      cublasLtMatmulPreferenceSetAttribute) \
    X(heuristic, "cublasLtMatmulAlgoGetHeuristic", cublasLtMatmulAlgoGetHeuristic) \
    X(matmul, "cublasLtMatmul", cublasLtMatmul)

#define DRIVER_MEMBER(member, name, declaration) __typeof__(declaration) *member;

typedef struct CudaDriver {
    void *library;
    CUDA_FUNCTIONS(DRIVER_MEMBER)
} CudaDriver;

typedef struct CublasLt {
    void *library;
    CUBLASLT_FUNCTIONS(DRIVER_MEMBER)
} CublasLt;

/* libcuda.so.1, the driver's own library; the error says what is missing and what to install. */
bool cuda_driver_open(CudaDriver *driver, Error *error);
void cuda_driver_close(CudaDriver *driver);

/* Starts the driver. The first of the GPUs that it shows, and their number. */
bool cuda_first_device(const CudaDriver *driver, CUdevice *device, int *count, Error *error);

/* libcublasLt.so.13, or .12. */
bool cublaslt_open(CublasLt *cublaslt, Error *error);
void cublaslt_close(CublasLt *cublaslt);

typedef struct LibrarySymbol {
    const char *name;
    void **place;
} LibrarySymbol;

/* Fills a table from an opened library; the error names the first function that is not there. */
bool library_symbols(void *library, const LibrarySymbol *symbols, size_t count, const char *name,
                     Error *error);

/* fail() with the name and text of a CUDA error after the message, when `result` is one. */
bool cuda_check(const CudaDriver *driver, CUresult result, Error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
