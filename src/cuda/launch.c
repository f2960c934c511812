#include <limits.h>
#include <stdio.h>

#include "cuda/executor.h"

enum { SHARED_WITHOUT_ASKING = 48 << 10 };

bool launch_only(Call *call, const char *kernel, Grid grid, unsigned threads, int64_t shared,
                 void **arguments) {
    const Gpu *gpu = call->executor->gpu;
    const CudaDriver *driver = &gpu->driver;
    CUfunction function;
    if (!gpu_find_kernel(gpu, kernel, &function, call->error)) return false;
    if (grid.x < 1 || grid.x > INT_MAX || grid.y < 1 || grid.y > 65535 || grid.z < 1 ||
        grid.z > 65535)
        return fail(call->error, "%s: a grid of %lld x %lld x %lld blocks is beyond what GPUs have",
                    kernel, (long long)grid.x, (long long)grid.y, (long long)grid.z);
    if (shared > SHARED_WITHOUT_ASKING &&
        !cuda_check(driver,
                    driver->function_set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         (int)shared),
                    call->error, "%s: %s has no %lld bytes of shared memory for a block", kernel,
                    gpu->name, (long long)shared))
        return false;
    return cuda_check(driver,
                      driver->launch(function, (unsigned)grid.x, (unsigned)grid.y, (unsigned)grid.z,
                                     threads, 1, 1, (unsigned)shared, call->stream, arguments,
                                     NULL),
                      call->error, "%s cannot be launched", kernel);
}

bool launch(Call *call, const char *kernel, Grid grid, unsigned threads, int64_t shared,
            void **arguments) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", kernel, dtype_name(call->storage));
    return launch_only(call, name, grid, threads, shared, arguments);
}
