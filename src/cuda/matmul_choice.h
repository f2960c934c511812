/* Which of cuBLASLt's algorithms multiplies a product: what was found in an earlier run, else the fastest
 * of a few that are timed, for a few seconds in all; then its heuristic's first. */
#ifndef HEARTH_CUDA_MATMUL_CHOICE_H
#define HEARTH_CUDA_MATMUL_CHOICE_H

#include "cuda/matmul.h"
#include "cuda/matmul_cache.h"
#include "cuda/stopwatch.h"

typedef struct Choice {
    const Matmuls *matmuls;
    const Program *program;
    CUdeviceptr arena; /* where its operands are */
    cublasLtMatmulPreference_t preference;
    Stopwatch watch;
    MatmulCache cache;
    double started;
    int timed; /* algorithms */
} Choice;

bool choice_begin(Choice *choice, CUstream stream, Error *error);

/* Fills in the product's algorithm, which has then run once on this operation's memory. */
bool choice_make(Choice *choice, Product *product, const Operation *operation, Error *error);

/* Keeps what was found for later runs, when all went well. */
void choice_end(Choice *choice, bool done);

#endif
