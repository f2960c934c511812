/* A grid, block by block. */
#include <algorithm>
#include <cstdlib>

#include "block.h"
#include "race.h"

/* The linker's names for the ends of the section that seam_host.h puts __shared__ variables in. */
extern "C" {
extern char __start_shared_memory[] __attribute__((weak, visibility("hidden")));
extern char __stop_shared_memory[] __attribute__((weak, visibility("hidden")));
}

namespace host {

static void check_shape(dim3 grid, dim3 size) {
    size_t threads = static_cast<size_t>(size.x) * size.y * size.z;
    if (threads == 0 || threads > block.kernel->threads)
        kernel_fault("a block with no threads, or more than the kernel was made for");
    if (size.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff ||
        grid.y > 65535 || grid.z > 65535)
        kernel_fault("a grid or block of a shape that devices refuse");
}

static void allocate_shared(size_t static_bytes, size_t dynamic_bytes) {
    block.static_bytes = (static_bytes + 127) / 128 * 128;
    block.dynamic_bytes = dynamic_bytes;
    void *memory = nullptr;
    /* Its exact size, so that AddressSanitizer sees what goes past the end. */
    if (posix_memalign(&memory, 128, block.static_bytes + dynamic_bytes) != 0) abort();
    block.shared = static_cast<unsigned char *>(memory);
}

static bool within(const void *memory, size_t bytes, const void *begin, size_t size) {
    uintptr_t at = reinterpret_cast<uintptr_t>(memory), first = reinterpret_cast<uintptr_t>(begin);
    return at >= first && at - first + bytes <= size;
}

void need_shared(const void *memory, size_t bytes, Site site) {
    size_t variables = static_cast<size_t>(__stop_shared_memory - __start_shared_memory);
    if (!within(memory, bytes, block.shared, block.static_bytes + block.dynamic_bytes) &&
        !within(memory, bytes, __start_shared_memory, variables))
        kernel_fault("an address is not in shared memory", site);
}

/* Nothing in shared memory survives from one block to the next. */
static void forget_shared() {
    size_t bytes = block.static_bytes + block.dynamic_bytes;
    size_t variables = static_cast<size_t>(__stop_shared_memory - __start_shared_memory);
    poison(block.shared, bytes);
    poison(__start_shared_memory, variables);
    race_block_begins(block.shared, bytes, __start_shared_memory, variables);
}

static void start_threads() {
    unsigned count = static_cast<unsigned>(block.threads.size());
    dim3 size = block.size;
    for (unsigned i = 0; i < count; i++) {
        Thread &thread = block.threads[i];
        thread.number = i;
        thread.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
        thread.state = State::fresh;
        thread.copies.clear();
        thread.copy_group = 0;
    }
    for (unsigned i = 0; i < block.warps.size(); i++) {
        unsigned lanes = std::min(warp_size, count - i * warp_size);
        block.warps[i].gatherings.clear();
        block.warps[i].lanes = full_warp >> (warp_size - lanes);
        block.warps[i].exited = 0;
    }
    block.fresh = ordered(count);
    std::reverse(block.fresh.begin(), block.fresh.end());
    block.exited = block.waiting = 0;
}

void launch(const Kernel &kernel, dim3 grid, dim3 size, size_t shared_bytes, void **parameters) {
    if (block.kernel) kernel_fault("a launch within a launch");
    block.kernel = &kernel;
    check_shape(grid, size);
    trust(parameters, kernel.parameter_sizes.size() * sizeof *parameters);
    for (size_t i = 0; i < kernel.parameter_sizes.size(); i++)
        trust(parameters[i], kernel.parameter_sizes[i]);
    block.parameters = parameters;
    block.grid = grid;
    block.size = size;
    block.threads.resize(static_cast<size_t>(size.x) * size.y * size.z);
    block.warps.resize((block.threads.size() + warp_size - 1) / warp_size);
    allocate_shared(kernel.static_shared_bytes, shared_bytes);
    race_launch_begins();
    for (unsigned number : ordered(grid.x * grid.y * grid.z)) {
        block.index = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
        forget_shared();
        start_threads();
        run_block();
    }
    race_launch_ends();
    free(block.shared);
    block.kernel = nullptr;
}

} // namespace host
