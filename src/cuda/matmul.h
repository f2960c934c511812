/* Matrix products by cuBLASLt: one Product for each shape and format that a program multiplies. */
#ifndef HEARTH_CUDA_MATMUL_H
#define HEARTH_CUDA_MATMUL_H

#include "cuda/gpu.h"
#include "step/program.h"

enum { MATMUL_CANDIDATES = 8 };

/* What cuBLASLt has to know of a product, and what its algorithms are chosen by. */
typedef struct ProductKey {
    int64_t M, N, K; /* out[M,N] = A[M,K] B[K,N], row-major */
    bool transpose_a, transpose_b, adds;
    Dtype operands, out;
    int align_a, align_b, align_out; /* of the operands' places, bytes */
} ProductKey;

/* An operand format with block scales adds its scale tensors' modes here and to the key. */
typedef struct Product {
    ProductKey key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, out; /* as cuBLASLt sees them: column-major, A and B exchanged */
    cublasLtMatmulAlgo_t algorithms[MATMUL_CANDIDATES]; /* the first is used */
    int count;
} Product;

typedef struct Matmuls {
    const Gpu *gpu;
    Product *products;
    size_t count;
    int *of_operation; /* [operation_count] index of its product; -1: it is no matmul */
} Matmuls;

/* Where an operand lies in device memory. */
typedef CUdeviceptr (*PlaceOperand)(void *context, Operand operand);

/* Finds the products of a program and an algorithm for each: from the cache of earlier runs, else by
 * timing candidates on the operands' own memory, which it overwrites. Every algorithm has then run once,
 * so that none can fail inside a captured graph. */
bool matmuls_open(Matmuls *matmuls, const Gpu *gpu, const Program *program, CUstream stream,
                  PlaceOperand place, void *context, Error *error);
void matmuls_close(Matmuls *matmuls);

/* Queues operation number `index`. */
bool matmul_run(const Matmuls *matmuls, int index, CUdeviceptr out, CUdeviceptr a, CUdeviceptr b,
                CUdeviceptr addend, CUdeviceptr workspace, CUstream stream, Error *error);

#endif
