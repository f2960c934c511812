/* Scratch memory of the GPU's operations. Plain C that needs no CUDA header: `hearth plan` uses it where
 * there is no GPU, and its sums are what the backend later asks for. */
#ifndef HEARTH_CUDA_WORKSPACE_H
#define HEARTH_CUDA_WORKSPACE_H

#include "base/integer.h"
#include "cuda/blocks.h"
#include "step/program.h"

/* Scratch that cuBLASLt may use: what NVIDIA advises for Hopper and later; earlier chips need less. */
enum { CUDA_MATMUL_WORKSPACE = 32 << 20 };

/* Blocks that a sum over a whole tensor is cut into, whatever the GPU: its bits do not depend on that. */
enum { CUDA_SUM_BLOCKS = 1024 };

/* Blocks that share the N rows of RMSNorm's backward: each has a row of partial sums. */
static inline int64_t cuda_rmsnorm_blocks(int64_t N) {
    enum { LEAST_ROWS = 8 };
    return smaller(divide_up(N, LEAST_ROWS), CUDA_SUM_BLOCKS);
}

/* Blocks of the backward of gates and of smear, which share N tokens, and of blends, which share n elements:
 * each has a partial sum, in double, for every scalar and weight. */
static inline int64_t cuda_gate_blocks(int64_t N) {
    enum { LEAST_TOKENS = 32 };
    return smaller(divide_up(N, LEAST_TOKENS), CUDA_SUM_BLOCKS);
}

static inline int64_t cuda_smear_blocks(int64_t N) {
    return smaller(divide_up(N, BLOCK_WARPS), CUDA_SUM_BLOCKS); /* a token to a warp */
}

static inline int64_t cuda_blend_blocks(int64_t n) {
    enum { LEAST_ELEMENTS = 2048 };
    return smaller(divide_up(n, LEAST_ELEMENTS), CUDA_SUM_BLOCKS);
}

/* Bytes an operation needs while it runs; -1 with an error when no kernel can do it. */
int64_t cuda_workspace(const Program *program, const Operation *operation, Error *error);

/* Bytes of attention's backward; -1 with an error for a head dimension there is no kernel for. */
int64_t cuda_attention_workspace(const Program *program, const Operation *operation, Error *error);

#endif
