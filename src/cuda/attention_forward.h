/* Sizes of attention's forward on tensor cores and of its decoding. Read by C and by CUDA C. PADDED: the
 * columns of a tile, 64 or 128, the next that holds the head dimension. */
#ifndef HEARTH_CUDA_ATTENTION_FORWARD_H
#define HEARTH_CUDA_ATTENTION_FORWARD_H

enum {
    FORWARD_TILE = 64,     /* queries, and keys, of a tile */
    FORWARD_THREADS = 128, /* 16 queries for each warp */
    DECODE_THREADS = 256
};

/* The tiles in shared memory: three, of bf16. */
#define FORWARD_SHARED(PADDED) (3 * FORWARD_TILE * (PADDED)*2)

#endif
