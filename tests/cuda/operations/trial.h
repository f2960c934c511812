/* A trial: one operation, or a few, done by both backends on the same inputs and compared.
 *
 *     Trial trial;
 *     trial_open(&trial, DTYPE_BF16);
 *     int x = trial_random(&trial, DTYPE_BF16, N * C, 1), out = trial_output(&trial, DTYPE_BF16, N * C);
 *     Operation *operation = trial_operation(&trial, OP_…);   fill in operands and shape
 *     trial_run(&trial);
 *     trial_close_to(&trial, out, 1e-2, 1e-3);
 *     trial_close(&trial);
 *
 * Buffers have gaps between them that the sanitizers guard, and outputs hold NaNs before. */
#ifndef HEARTH_TESTS_CUDA_TRIAL_H
#define HEARTH_TESTS_CUDA_TRIAL_H

#include "step/program.h"
#include "support.h"

enum { TRIAL_BUFFERS = 32 };

typedef struct Trial {
    Program program;
    StepScalars scalars;
    uint64_t draws;
    int64_t bytes[TRIAL_BUFFERS]; /* of a buffer, without the gap behind it */
    void *start[TRIAL_BUFFERS];   /* what it holds before */
    void *cpu[TRIAL_BUFFERS];     /* what each backend leaves in it */
    void *cuda[TRIAL_BUFFERS];
} Trial;

void trial_open(Trial *trial, Dtype storage);
void trial_close(Trial *trial);

/* Buffers; each gives its index in the program. */
int trial_random(Trial *trial, Dtype dtype, int64_t elements, double deviation);
int trial_integers(Trial *trial, int64_t elements, int32_t bound); /* in [0, bound) */
int trial_given(Trial *trial, Dtype dtype, int64_t elements, const void *data);
int trial_output(Trial *trial, Dtype dtype, int64_t elements);

/* document_start[B,T] of documents of `length` tokens, each row's cut elsewhere; -1, no buffer, for 0. */
int trial_documents(Trial *trial, int64_t B, int64_t T, int64_t length);

/* What a buffer of random numbers or of given data holds before: to change some of it. */
void *trial_data(Trial *trial, int buffer);

/* Adds an operation with no operands; sizes of workspaces are the backend's affair. */
Operation *trial_operation(Trial *trial, OperationKind kind);

/* Runs all operations on both backends and fetches every buffer; may be called again. */
void trial_run(Trial *trial);

/* |cuda - cpu| <= relative * |cpu| + absolute, of floating-point elements. */
void trial_close_to(Trial *trial, int buffer, double relative, double absolute);

/* The same bits. */
void trial_same(Trial *trial, int buffer);

#endif
