/* cuLaunchKernel and what limits it. */
#include <cstring>
#include <memory>
#include <vector>

#include <sys/mman.h>

#include "arena.h"
#include "chips.h"
#include "host/runtime.h"
#include "memory.h"
#include "modules.h"
#include "streams.h"

namespace driver {

/* Some work the chip could do in the time: kernels that compute more are not told from those that do not. */
static double kernel_time(int64_t threads) {
    return 2500 + static_cast<double>(threads) / (chip().multiprocessors * chip().clock_mhz * 1e-3);
}

static CUresult check_shape(const CUfunc_st &function, const dim3 &grid, const dim3 &block,
                            unsigned shared) {
    const host::Kernel &kernel = *function.kernel;
    if (!grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "%s: a grid of %u x %u x %u blocks", kernel.name,
                      grid.x, grid.y, grid.z);
    }
    uint64_t threads = uint64_t{block.x} * block.y * block.z;
    if (!threads || threads > 1024 || block.z > 64) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "%s: a block of %u x %u x %u threads", kernel.name,
                      block.x, block.y, block.z);
    }
    if (threads > kernel.threads) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "%s: %llu threads a block, it is compiled for %u",
                      kernel.name, static_cast<unsigned long long>(threads), kernel.threads);
    }
    if (shared > function.dynamic_shared) {
        return refuse(CUDA_ERROR_INVALID_VALUE,
                      "%s: %u bytes of dynamic shared memory, cuFuncSetAttribute allowed %u",
                      kernel.name, shared, function.dynamic_shared);
    }
    return CUDA_SUCCESS;
}

/* Whether the address is memory of the program's own: on x86-64 and aarch64 no size or count looks like it. */
static bool is_mapped(uintptr_t address) {
    unsigned char resident;
    return address >> 40 &&
           mincore(reinterpret_cast<void *>(address & ~uintptr_t{4095}), 1, &resident) == 0;
}

/* What a parameter points to, if it looks like a pointer. */
static void use_parameter(Uses &uses, const char *kernel, size_t number, uint64_t value) {
    auto found = find_allocation(value);
    if (found) {
        uses.push_back(found);
    } else if (arena_contains(reinterpret_cast<void *>(value))) {
        die("%s: parameter %zu is 0x%llx, no live memory of the device", kernel, number,
            static_cast<unsigned long long>(value));
    } else if (is_mapped(value)) {
        die("%s: parameter %zu is 0x%llx, memory of the program", kernel, number,
            static_cast<unsigned long long>(value));
    }
}

/* Copies of the parameters, which the program may change once the launch has returned. */
typedef std::vector<std::vector<char>> Parameters;

static Parameters copy_parameters(const host::Kernel &kernel, void **parameters, Uses &uses) {
    Parameters copies;
    for (size_t i = 0; i < kernel.parameter_sizes.size(); i++) {
        size_t bytes = kernel.parameter_sizes[i];
        const char *first = static_cast<const char *>(parameters[i]);
        if (!first)
            die("%s: parameter %zu of %zu is null", kernel.name, i, kernel.parameter_sizes.size());
        copies.emplace_back(first, first + bytes);
        host::trust(copies.back().data(), bytes);
        uint64_t value = 0;
        if (bytes == sizeof value) {
            memcpy(&value, first, bytes);
            use_parameter(uses, kernel.name, i, value);
        }
    }
    return copies;
}

static void run(const host::Kernel &kernel, dim3 grid, dim3 block, unsigned shared,
                Parameters &parameters) {
    if (fault_now("launch")) {
        complain("%s fails, as TEST_GPU_FAULT asks", kernel.name);
        fail_context(CUDA_ERROR_LAUNCH_FAILED);
        return;
    }
    std::vector<void *> addresses;
    for (auto &parameter : parameters) addresses.push_back(parameter.data());
    host::launch(kernel, grid, block, shared, addresses.data());
}

} // namespace driver

using namespace driver;

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    Call call(__func__);
    TRY(ready());
    check_function(function);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "attribute %d is not modelled",
                      static_cast<int>(attribute));
    }
    if (value < 0 || value > chip().shared_block) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "%s: %d bytes of dynamic shared memory, %s has %d",
                      function->kernel->name, value, chip().name, chip().shared_block);
    }
    function->dynamic_shared = static_cast<unsigned>(value);
    return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            CUstream stream, void **parameters, void **extra) {
    Call call(__func__);
    TRY(ready());
    check_function(function);
    dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    TRY(check_shape(*function, grid, block, shared));
    if (extra) return refuse(CUDA_ERROR_INVALID_VALUE, "`extra` is not modelled");
    const host::Kernel &kernel = *function->kernel;
    Uses uses;
    auto copies = std::make_shared<Parameters>(copy_parameters(kernel, parameters, uses));
    int64_t threads = int64_t{grid_x} * grid_y * grid_z * block_x * block_y * block_z;
    return submit(stream, {kernel.name, kernel_time(threads), uses,
                           [=, &kernel] { run(kernel, grid, block, shared, *copies); }});
}
