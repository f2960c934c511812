#include "cuda/gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/images.h"

static Gpu gpu;
static Error why_not;
static bool opened;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool read_attributes(Error *error) {
    const CudaDriver *driver = &gpu.driver;
    int major = 0, minor = 0, unified = 0;
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } wanted[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
                  {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &gpu.multiprocessors},
                  {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &gpu.clock},
                  {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &gpu.memory_clock},
                  {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &gpu.bus},
                  {CU_DEVICE_ATTRIBUTE_INTEGRATED, &unified}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!cuda_check(driver,
                        driver->device_attribute(wanted[i].value, wanted[i].attribute, gpu.device),
                        error, "the GPU does not say what it is"))
            return false;
    size_t memory = 0;
    if (!cuda_check(driver, driver->device_name(gpu.name, sizeof gpu.name, gpu.device), error,
                    "the GPU does not say its name") ||
        !cuda_check(driver, driver->device_memory(&memory, gpu.device), error,
                    "the GPU does not say how much memory it has") ||
        !cuda_check(driver, driver->driver_version(&gpu.driver_version), error,
                    "the driver does not say its version"))
        return false;
    gpu.capability = 10 * major + minor;
    gpu.memory = (int64_t)memory;
    gpu.unified = unified != 0;
    return gpu.capability >= 80 ||
           fail(error,
                "%s has compute capability %d.%d; hearth's kernels need 8.0 (Ampere) or later",
                gpu.name, major, minor);
}

/* A driver loads what toolkits up to its own major version made. */
static bool load_kernels(Error *error) {
    const bool old = gpu.driver_version / 1000 < CUDA_VERSION / 1000;
    for (const KernelImage *image = kernel_images; image->name; image++) {
        CUresult result = gpu.driver.module_load(&gpu.modules[gpu.module_count], image->data);
        if (!cuda_check(&gpu.driver, result, error,
                        "the kernels in %s.cu cannot be loaded on %s (compute capability %d.%d)%s",
                        image->name, gpu.name, gpu.capability / 10, gpu.capability % 10,
                        old ? " by a driver older than their compiler; update it, to 580 or later"
                            : ""))
            return false;
        gpu.module_count++;
    }
    return true;
}

static void close_gpu(void) {
    const CudaDriver *driver = &gpu.driver;
    if (gpu.cublaslt_handle) gpu.cublaslt.destroy(gpu.cublaslt_handle);
    cublaslt_close(&gpu.cublaslt);
    for (int i = 0; i < gpu.module_count; i++) driver->module_unload(gpu.modules[i]);
    if (gpu.context) driver->context_release(gpu.device);
    cuda_driver_close(&gpu.driver);
    gpu = (Gpu){0};
}

static void open_once(void) {
    Error *error = &why_not;
    int count;
    opened = cuda_driver_open(&gpu.driver, error) &&
             cuda_first_device(&gpu.driver, &gpu.device, &count, error) && read_attributes(error) &&
             cuda_check(&gpu.driver, gpu.driver.context_retain(&gpu.context, gpu.device), error,
                        "%s cannot be used", gpu.name) &&
             gpu_use(&gpu, error) && load_kernels(error) && cublaslt_open(&gpu.cublaslt, error);
    if (opened && gpu.cublaslt.create(&gpu.cublaslt_handle) != CUBLAS_STATUS_SUCCESS)
        opened = fail(error, "cuBLASLt does not start on %s", gpu.name);
    if (opened)
        atexit(close_gpu);
    else
        close_gpu();
}

const Gpu *gpu_open(Error *error) {
    pthread_once(&once, open_once);
    if (opened) return &gpu;
    *error = why_not;
    return NULL;
}

bool gpu_use(const Gpu *self, Error *error) {
    return cuda_check(&self->driver, self->driver.context_set(self->context), error,
                      "%s cannot be used", self->name);
}

/* Kernels that have been asked for. */
enum { KERNELS_MOST = 128, KERNEL_NAME = 64 };
static struct {
    char name[KERNEL_NAME];
    CUfunction function;
} kernels[KERNELS_MOST];
static int kernel_count;

bool gpu_find_kernel(const Gpu *self, const char *name, CUfunction *function, Error *error) {
    for (int i = 0; i < kernel_count; i++)
        if (!strcmp(kernels[i].name, name)) {
            *function = kernels[i].function;
            return true;
        }
    for (int i = 0; i < self->module_count; i++) {
        if (self->driver.module_function(function, self->modules[i], name) != CUDA_SUCCESS)
            continue;
        if (kernel_count < KERNELS_MOST) {
            snprintf(kernels[kernel_count].name, KERNEL_NAME, "%s", name);
            kernels[kernel_count++].function = *function;
        }
        return true;
    }
    return fail(error, "this build of hearth has no kernel %s", name);
}
