/* One matrix product of cuBLASLt: its shape and format, and cuBLASLt's descriptions of it. */
#ifndef HEARTH_CUDA_PRODUCT_H
#define HEARTH_CUDA_PRODUCT_H

#include "cuda/gpu.h"
#include "numeric/dtype.h"

enum { PRODUCT_CANDIDATES = 8, PRODUCT_TEXT = 128 };

/* What cuBLASLt has to know of a product, and what its algorithms are chosen by. */
typedef struct ProductKey {
    int64_t M, N, K; /* out[M,N] = A[M,K] B[K,N], row-major */
    bool transpose_a, transpose_b, adds;
    Dtype operands, out;
    int align_a, align_b, align_out; /* of the operands' places, bytes */
} ProductKey;

/* "768x2048x512 NT bf16 -> fp32 added, aligned to 256, 256, 16", for messages and as the cache's key. */
void product_text(const ProductKey *key, char text[PRODUCT_TEXT]);

/* An operand format with block scales adds its scale tensors' modes here and to the key. */
typedef struct Product {
    ProductKey key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, out; /* as cuBLASLt sees them: column-major, A and B exchanged */
    cublasLtMatmulAlgo_t algorithms[PRODUCT_CANDIDATES]; /* the first is used */
    int count;
} Product;

/* Makes cuBLASLt's descriptions of the product whose key is filled in. */
bool product_open(const Gpu *gpu, Product *product, Error *error);
void product_close(const Gpu *gpu, Product *product);

/* In device memory; the addend counts only where the product adds. */
typedef struct ProductOperands {
    CUdeviceptr out, a, b, addend, workspace;
} ProductOperands;

/* Queues the product with one algorithm; NULL: the heuristic's. */
bool product_run(const Gpu *gpu, const Product *product, const cublasLtMatmulAlgo_t *algorithm,
                 const ProductOperands *operands, CUstream stream, Error *error);

#endif
