/* Matrix products by oneDNN, on plain row-major operands. Where oneDNN has no bf16 product for the
 * processor (x86-64 without AVX-512, Arm), the operands are widened and multiplied in fp32. */
#ifndef HEARTH_CPU_MATMUL_H
#define HEARTH_CPU_MATMUL_H

#include "base/error.h"
#include "step/operation.h"

typedef enum MatmulAddend {
    ADDEND_NONE,
    ADDEND_OUT,  /* out += a · b */
    ADDEND_OTHER /* out = a · b + addend */
} MatmulAddend;

/* A prepared product; equal shapes share one. */
typedef struct Matmul Matmul;

typedef struct MatmulTypes {
    Dtype out, a, b; /* the addend has out's */
} MatmulTypes;

/* NULL with an error when oneDNN has no such product on this processor. */
Matmul *matmul_create(MatmulShape shape, MatmulTypes types, MatmulAddend addend, Error *error);
void matmul_free(Matmul *matmul);

/* Scratch bytes that matmul_run() needs. */
int64_t matmul_scratch(const Matmul *matmul);

bool matmul_run(Matmul *matmul, void *out, const void *a, const void *b, const void *addend,
                void *scratch, Error *error);

#endif
