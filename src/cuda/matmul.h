/* The matrix products of a program: one Product for each shape and format that a program multiplies. */
#ifndef HEARTH_CUDA_MATMUL_H
#define HEARTH_CUDA_MATMUL_H

#include "cuda/product.h"
#include "step/program.h"

typedef struct Matmuls {
    const Gpu *gpu;
    Product *products;
    size_t count;
    int *of_operation; /* [operation_count] index of its product; -1: it is no matmul */
} Matmuls;

/* Finds the products of a program and an algorithm for each: from the cache of earlier runs, else by
 * timing candidates on the operands' own memory, which it overwrites. Every algorithm has then run once,
 * so that none can fail inside a captured graph. */
bool matmuls_open(Matmuls *matmuls, const Gpu *gpu, const Program *program, CUstream stream,
                  CUdeviceptr arena, Error *error);
void matmuls_close(Matmuls *matmuls);

/* Queues operation number `index` of the program. */
bool matmul_run(const Matmuls *matmuls, int index, const ProductOperands *operands, CUstream stream,
                Error *error);

#endif
