/* Algorithms found in earlier runs, in one file for each GPU, driver and cuBLASLt:
 * ~/.cache/hearth/matmuls-….json. With them a run starts at once, and multiplies as the one it resumes. */
#ifndef HEARTH_CUDA_MATMUL_CACHE_H
#define HEARTH_CUDA_MATMUL_CACHE_H

#include <cublasLt.h>
#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

typedef struct MatmulCache {
    char *path;     /* NULL: there is no place for it */
    Error no_place; /* why */
    json_t *products;
    bool changed;
} MatmulCache;

/* Never fails: a cache that cannot be read counts as empty. */
void matmul_cache_open(MatmulCache *cache, const char *gpu, int driver_version, size_t cublaslt);

/* Writes what was added; warns when that fails. Frees the cache. */
void matmul_cache_close(MatmulCache *cache);

/* The algorithm for a product; false when none is known. */
bool matmul_cache_find(const MatmulCache *cache, const char *product,
                       cublasLtMatmulAlgo_t *algorithm);
void matmul_cache_set(MatmulCache *cache, const char *product,
                      const cublasLtMatmulAlgo_t *algorithm);

/* Algorithms that failed are not tried again. */
bool matmul_cache_failed(const MatmulCache *cache, const char *product,
                         const cublasLtMatmulAlgo_t *algorithm);
void matmul_cache_set_failed(MatmulCache *cache, const char *product,
                             const cublasLtMatmulAlgo_t *algorithm);

#endif
