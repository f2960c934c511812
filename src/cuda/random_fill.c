#include "cuda/random_fill.h"

#include "base/integer.h"
#include "base/random.h"
#include "numeric/dtype.h"

bool random_fill(const Gpu *gpu, CUdeviceptr memory, int64_t bytes, CUstream stream, Error *error) {
    enum { COUNT = 1 << 15 };
    static bf16 block[COUNT];
    const CudaDriver *driver = &gpu->driver;
    if (!bytes) return true;
    for (int i = 0; i < COUNT; i++) block[i] = bf16_from_float(random_normal(1, 0, (uint64_t)i));
    int64_t filled = smaller((int64_t)sizeof block, bytes);
    CUresult result = driver->copy_in(memory, block, (size_t)filled, stream);
    for (; result == CUDA_SUCCESS && filled < bytes; filled *= 2)
        result = driver->copy_within(memory + (CUdeviceptr)filled, memory,
                                     (size_t)smaller(filled, bytes - filled), stream);
    return cuda_check(driver, result, error, "%s cannot be given numbers to measure with",
                      gpu->name);
}
