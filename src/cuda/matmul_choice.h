/* Which of cuBLASLt's algorithms multiplies a product: what was found in an earlier run, else the fastest
 * of a few that are timed, for a few seconds in all; then its heuristic's first. */
#ifndef HEARTH_CUDA_MATMUL_CHOICE_H
#define HEARTH_CUDA_MATMUL_CHOICE_H

#include "cuda/matmul.h"
#include "cuda/matmul_cache.h"
#include "cuda/workspace.h"

/* "768x2048x512 NT bf16 -> fp32 +", for messages and as the cache's key. */
enum { PRODUCT_TEXT = 128 };
void product_text(const ProductKey *key, char text[PRODUCT_TEXT]);

typedef struct ProductOperands {
    CUdeviceptr out, a, b, addend, workspace;
} ProductOperands;

/* Makes cuBLASLt's descriptions of the product whose key is filled in. */
bool product_open(const Matmuls *matmuls, Product *product, Error *error);
void product_close(const Matmuls *matmuls, Product *product);

/* Queues the product with one algorithm; NULL: the heuristic's. */
bool product_run(const Matmuls *matmuls, const Product *product,
                 const cublasLtMatmulAlgo_t *algorithm, const ProductOperands *operands,
                 CUstream stream, Error *error);

typedef struct Choice {
    const Matmuls *matmuls;
    CUstream stream;
    PlaceOperand place;
    void *context;
    cublasLtMatmulPreference_t preference;
    CUevent began, ended;
    MatmulCache cache;
    double started;
    int timed, failed;
} Choice;

bool choice_begin(Choice *choice, Error *error);

/* Fills in the product's algorithm, which has then run once on this operation's memory. */
bool choice_make(Choice *choice, Product *product, const Operation *operation, Error *error);

/* Keeps what was found for later runs, when all went well. */
void choice_end(Choice *choice, bool done);

#endif
