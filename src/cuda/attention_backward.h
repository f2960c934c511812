/* Sizes of attention's backward on tensor cores. Read by C and by CUDA C. PADDED: columns of the tiles,
 * 64 or 128. */
#ifndef HEARTH_CUDA_ATTENTION_BACKWARD_H
#define HEARTH_CUDA_ATTENTION_BACKWARD_H

enum {
    BACKWARD_STREAMED = 32, /* rows of a streamed tile */
    BACKWARD_DELTA_THREADS = 256,
    BACKWARD_DELTA_QUERIES = BACKWARD_DELTA_THREADS / 16, /* of a block */
    BACKWARD_STATISTICS = 8                               /* bytes for each query of a head */
};

/* A block owns PADDED rows, 16 for each warp. */
#define BACKWARD_THREADS(PADDED) (2 * (PADDED))

/* Bytes of two owned tiles and two pairs of streamed ones. */
#define BACKWARD_SHARED(PADDED) (2 * (PADDED) * (2 * (PADDED) + 4 * BACKWARD_STREAMED))

/* Queries that statistics are kept of: whole blocks of them. */
#define BACKWARD_ALIGNED(T) (((T) + 127) / 128 * 128)

#endif
