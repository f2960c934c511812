/* The chips that the driver can pose as: TEST_GPU_CHIP names one. */
#ifndef TEST_CUDA_CHIPS_H
#define TEST_CUDA_CHIPS_H

#include <cstdint>

namespace driver {

struct Chip {
    const char *name, *product;
    int major, minor;                        /* compute capability */
    int multiprocessors, threads;            /* resident on a multiprocessor */
    int64_t mebibytes;                       /* of device memory, as the driver reports it */
    int shared_block, shared_multiprocessor; /* bytes: most that a block may ask for, and in all */
    int l2_mebibytes;
    int clock_mhz, memory_clock_mhz, bus_bits;
    double teraflops, gigabytes; /* a second: bf16 products with fp32 sums, memory */
    int watts;
    bool integrated; /* memory is shared with the CPU */
};

/* The default is the rtx-5090. An unknown name ends the program. */
const Chip &chip();

/* Bytes of device memory: the chip's, or TEST_GPU_MEMORY. */
int64_t device_memory();

} // namespace driver

#endif
