/* The block that is running: shared by the files of the runtime, unknown outside. */
#ifndef TEST_CUDA_HOST_BLOCK_H
#define TEST_CUDA_HOST_BLOCK_H

#include <deque>

#include "fiber.h"
#include "runtime.h"

namespace host {

enum class State { fresh, runnable, in_collective, at_barrier, done };

struct Copy { /* a cp.async under way */
    void *shared;
    const void *global;
    bool valid;
    int group;
};

struct Thread {
    unsigned number;
    uint3 index;
    State state;
    Fiber *fiber;
    Site site;      /* the last barrier or collective */
    unsigned mask;  /* of the collective */
    void *argument; /* to it */
    std::vector<Copy> copies;
    int copy_group; /* the one now open */
};

/* Lanes of a warp that wait for the others in the same collective. */
struct Gathering {
    unsigned mask, arrived;
    Combine combine;
};

struct Warp {
    std::vector<Gathering> gatherings;
    unsigned lanes, exited;
};

struct Block {
    const Kernel *kernel; /* null when nothing runs */
    void **parameters;
    dim3 grid, size;
    uint3 index;
    unsigned char *shared; /* static, then dynamic */
    size_t static_bytes, dynamic_bytes;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<unsigned> fresh;   /* threads not yet started, the next one last */
    std::deque<unsigned> runnable; /* threads that may go on, in the order they were released */
    unsigned waiting;              /* at the barrier */
    unsigned exited;
    Thread *current; /* null outside the threads */
};

extern Block block;

/* 0..count-1 in the order of the settings. */
std::vector<unsigned> ordered(unsigned count);
/* Aborts unless the bytes are shared memory of the block. */
void need_shared(const void *memory, size_t bytes, Site site);
/* Runs the block's threads to their end. */
void run_block();

} // namespace host

#endif
