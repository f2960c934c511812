/* Scratch memory of the GPU's operations. Plain C that needs no CUDA header: `hearth plan` uses it where
 * there is no GPU, and its sums are what the backend later asks for. */
#ifndef HEARTH_CUDA_WORKSPACE_H
#define HEARTH_CUDA_WORKSPACE_H

#include "step/program.h"

/* Scratch that cuBLASLt may use: what NVIDIA advises for Hopper and later; earlier chips need less. */
enum { CUDA_MATMUL_WORKSPACE = 32 << 20 };

/* Bytes an operation needs while it runs; -1 with an error when no kernel can do it. */
int64_t cuda_workspace(const Program *program, const Operation *operation, Error *error);

/* Bytes of attention's backward; -1 with an error for a head dimension there is no kernel for. */
int64_t cuda_attention_workspace(const Program *program, const Operation *operation, Error *error);

#endif
