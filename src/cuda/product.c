#include "cuda/product.h"

#include <stdio.h>

#include "cuda/workspace.h"

void product_text(const ProductKey *key, char text[PRODUCT_TEXT]) {
    snprintf(text, PRODUCT_TEXT, "%lldx%lldx%lld %c%c %s -> %s%s, aligned to %d, %d, %d",
             (long long)key->M, (long long)key->N, (long long)key->K, key->transpose_a ? 'T' : 'N',
             key->transpose_b ? 'T' : 'N', dtype_name(key->operands), dtype_name(key->out),
             key->adds ? " added" : "", key->align_a, key->align_b, key->align_out);
}

static cudaDataType_t type_of(Dtype dtype) {
    return dtype == DTYPE_F32 ? CUDA_R_32F : CUDA_R_16BF;
}

static bool check(cublasStatus_t status, const Gpu *gpu, const ProductKey *key, Error *error) {
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    char text[PRODUCT_TEXT];
    product_text(key, text);
    return fail(error, "cuBLASLt cannot multiply %s on %s: %s", text, gpu->name,
                gpu->cublaslt.status_string(status));
}

void product_close(const Gpu *gpu, Product *product) {
    const CublasLt *lt = &gpu->cublaslt;
    if (product->desc) lt->desc_destroy(product->desc);
    if (product->a) lt->layout_destroy(product->a);
    if (product->b) lt->layout_destroy(product->b);
    if (product->out) lt->layout_destroy(product->out);
}

/* cuBLASLt is column-major, where row-major matrices appear transposed: it computes out' = B' A', with our
 * B as its first operand and no copy of anything. */
bool product_open(const Gpu *gpu, Product *product, Error *error) {
    const CublasLt *lt = &gpu->cublaslt;
    const ProductKey *key = &product->key;
    cublasOperation_t first = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                      second = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint64_t M = (uint64_t)key->M, N = (uint64_t)key->N, K = (uint64_t)key->K;
    cudaDataType_t operands = type_of(key->operands);
    uint64_t b_rows = key->transpose_b ? K : N, a_rows = key->transpose_a ? M : K;
    return check(lt->desc_create(&product->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), gpu, key,
                 error) &&
           check(lt->desc_set(product->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
                 gpu, key, error) &&
           check(lt->desc_set(product->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
                 gpu, key, error) &&
           check(lt->layout_create(&product->b, operands, b_rows, key->transpose_b ? N : K,
                                   (int64_t)b_rows),
                 gpu, key, error) &&
           check(lt->layout_create(&product->a, operands, a_rows, key->transpose_a ? K : M,
                                   (int64_t)a_rows),
                 gpu, key, error) &&
           check(lt->layout_create(&product->out, type_of(key->out), N, M, key->N), gpu, key,
                 error);
}

bool product_run(const Gpu *gpu, const Product *product, const cublasLtMatmulAlgo_t *algorithm,
                 const ProductOperands *operands, CUstream stream, Error *error) {
    static const float one = 1, zero = 0;
    const CublasLt *lt = &gpu->cublaslt;
    CUdeviceptr addend = product->key.adds ? operands->addend : operands->out;
    return check(lt->matmul(gpu->cublaslt_handle, product->desc, &one, (const void *)operands->b,
                            product->b, (const void *)operands->a, product->a,
                            product->key.adds ? &one : &zero, (const void *)addend, product->out,
                            (void *)operands->out, product->out, algorithm,
                            (void *)operands->workspace, CUDA_MATMUL_WORKSPACE, stream),
                 gpu, &product->key, error);
}
