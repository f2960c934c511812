/* Threads of the kernels' blocks, of which kernels and launches must know the same; those of attention are
 * in headers of its own. Read by C and by CUDA C. */
#ifndef HEARTH_CUDA_BLOCKS_H
#define HEARTH_CUDA_BLOCKS_H

enum {
    BLOCK_THREADS = 256,
    BLOCK_WARPS = BLOCK_THREADS / 32,
    WIDE_BLOCK_THREADS = 512, /* for rows as long as the vocabulary */
    COLUMN_SUMS = 32,         /* columns of a block of rmsnorm_backward_weight, one to a lane */
    COLUMN_SUMS_THREADS = 1024,
    MUON_TILE = 32,   /* rows and columns of a tile that is transposed */
    MUON_COLUMNS = 64 /* of a block of muon_square_columns */
};

#endif
