/* Matrix products for cuBLASLt: what one is, what a chip accepts, how it is computed.
 *
 * D[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C[m, n], column-major, for each matrix of a batch. */
#ifndef TEST_CUDA_MATMUL_H
#define TEST_CUDA_MATMUL_H

#include <cstdint>
#include <vector>

#include <cublasLt.h>

#include "memory.h"

namespace driver {

struct Layout {
    cudaDataType_t type = CUDA_R_32F;
    uint64_t rows = 0, columns = 0;
    int64_t leading = 0; /* elements between columns; between rows in row order */
    int32_t order = CUBLASLT_ORDER_COL, batch = 1;
    int64_t stride = 0; /* elements between the matrices of a batch */

    /* Elements from the first to behind the last. */
    int64_t extent() const;
    bool operator==(const Layout &other) const;
};

struct Description {
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    cudaDataType_t scale_type = CUDA_R_32F;
    cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
    const float *scale_a = nullptr, *scale_b = nullptr; /* device memory */
    int32_t scale_mode_a = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    int32_t scale_mode_b = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    int8_t fast_accumulation = 0;
};

/* A product with everything it needs. */
struct Product {
    Description description;
    Layout a, b, c, d;
    float alpha = 1, beta = 0;
    const void *pointer_a = nullptr, *pointer_b = nullptr, *pointer_c = nullptr;
    void *pointer_d = nullptr;

    int64_t m() const;
    int64_t n() const;
    int64_t k() const;
    /* Elements of all its results. */
    int64_t results() const;
};

/* Bits of an element; 0 for a type that is not modelled. */
int bits_of(cudaDataType_t type);
inline int64_t bytes_of(cudaDataType_t type, int64_t elements) {
    return (elements * bits_of(type) + 7) / 8;
}

/* ---- rules.cpp ---- */

/* Whether the chip's library has this product at all, whatever the algorithm and the pointers. */
cublasStatus_t check_product(const Product &product);

/* The largest power of two, up to 256, that divides what addresses of a matrix's columns are multiples of. */
int64_t alignment_of(const Layout &layout, uint64_t pointer);

/* ---- operands.cpp ---- */

/* CUBLAS_STATUS_INVALID_VALUE, having said why. */
cublasStatus_t invalid(const char *why);

/* Whether the matrices and scales are the device's memory, and D overlaps nothing but a C that is D. Adds
 * what they lie in to uses. */
cublasStatus_t check_operands(const Product &product, Uses &uses);
cublasStatus_t check_workspace(void *workspace, size_t bytes, Uses &uses);

/* ---- algorithms.cpp ---- */

struct Algorithm {
    int number = 0;
    int parts = 0;          /* that the k's are added up in */
    uint32_t reduction = 0; /* how: a bit of cublasLtReductionScheme_t; 0 for one part */
    int64_t alignment = 0;  /* bytes that all columns must be multiples of */
    int64_t workspace = 0;  /* bytes */
    double nanoseconds = 0; /* what the chip takes */
};

/* Those that can do the product where pointers have these alignments, in the order a heuristic would give. */
std::vector<Algorithm> algorithms_for(const Product &product, const int64_t (&alignments)[4]);

/* ---- compute.cpp ---- */

/* sums[part][batch][n][m], in fp32: op(A) op(B) over each part's k's. */
void partial_products(const Product &product, int parts, float *sums);

/* D from the sums of all parts, added from part `first` on. */
void combine_parts(const Product &product, int parts, int first, const float *sums);

} // namespace driver

#endif
