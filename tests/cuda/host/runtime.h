/* Runs CUDA kernels on the CPU: blocks one after another, each thread of a block as a fiber.
 *
 * A kernel is C++ compiled by the host compiler through seam_host.h, or code that something else
 * interprets. The calls below the line are what its threads may do; a fault found on the way (a deadlock,
 * a divergent barrier, a misaligned address, a race) prints a report and aborts. One launch at a time. */
#ifndef TEST_CUDA_HOST_RUNTIME_H
#define TEST_CUDA_HOST_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <vector_types.h>

namespace host {

constexpr unsigned warp_size = 32;
constexpr unsigned full_warp = 0xffffffffu;

struct Kernel {
    const char *name;
    const char *file;                           /* its source */
    std::vector<unsigned> parameter_sizes;      /* bytes */
    unsigned threads;                           /* most threads its blocks may have */
    std::function<void(void **parameters)> run; /* what each thread does */
    size_t static_shared_bytes = 0;             /* memory run() wants at static_shared() */
};

/* Every kernel linked in. A reference into it stays valid until the next is added. */
std::vector<Kernel> &kernels();
const Kernel *find_kernel(const char *name); /* NULL when there is none */

/* Runs the whole grid. parameters: the address of each parameter. */
void launch(const Kernel &kernel, dim3 grid, dim3 block, size_t shared_bytes, void **parameters);

enum class Order { forward, reverse, random };

/* TEST_GPU_ORDER (forward, reverse or random), TEST_GPU_SEED, TEST_GPU_ASYNC (late or eager). */
struct Settings {
    Order order;       /* in which threads that could run do */
    unsigned seed;     /* of the random order */
    bool eager_copies; /* cp.async copies when issued, instead of at the last legal moment */
};
const Settings &settings();

/* Device memory, for the race detector: all that kernels share between blocks. */
void note_allocation(void *memory, size_t bytes);
void note_release(void *memory);

/* Makes memory unwritten: 0xff bytes (NaN), which MSan reports where a result depends on them. */
void poison(void *memory, size_t bytes);
/* Tells MSan that code it does not watch has written this. */
void trust(const void *memory, size_t bytes);
/* Aborts, under MSan, unless each byte was computed from written memory. */
void check_initialised(const void *memory, size_t bytes);

/* ---- for the running thread of a kernel ---- */

/* Where in a kernel's source an operation stands. `id` tells two on one line apart. */
struct Site {
    const char *file;
    int line, id;
};

uint3 thread_index();
uint3 block_index();
dim3 block_size();
dim3 grid_size();
unsigned thread_number(); /* in its block */
unsigned lane();          /* in its warp */

unsigned char *static_shared();  /* of the block, followed by the dynamic one; both aligned to */
unsigned char *dynamic_shared(); /* 128 bytes */
size_t dynamic_shared_bytes();

/* __syncthreads(). */
void barrier(Site site);

/* What a warp's lanes do together. Each lane of `mask` arrives with its own argument; the last to arrive
 * calls combine(arguments), where arguments[lane] is null for lanes outside the mask. */
typedef void (*Combine)(void **arguments);
void warp_collective(unsigned mask, Combine combine, void *argument, Site site);
/* __syncwarp(). */
void warp_barrier(unsigned mask, Site site);
/* Aborts unless the warp has all its lanes, which mma and ldmatrix need. */
void need_full_warp(Site site);

/* cp.async of 16 bytes, zeros unless `valid`; the group is closed, and all but the latest `pending`
 * groups have arrived. */
void copy_async16(void *shared, const void *global, bool valid, Site site);
void copy_async_commit();
void copy_async_wait(int pending);

/* For memory a kernel touches through the runtime, which the race detector cannot see. */
enum class Access { read, write, atomic };
void note_access(const volatile void *memory, size_t bytes, Access access);

[[noreturn]] void kernel_fault(const char *message, Site site = {}, Site other = {});

} // namespace host

#endif
