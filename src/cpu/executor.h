/* A program at work on the CPU; shared by backend.c and operations.c. */
#ifndef HEARTH_CPU_EXECUTOR_H
#define HEARTH_CPU_EXECUTOR_H

#include "cpu/kernels.h"
#include "cpu/matmul.h"
#include "step/backend.h"

struct Executor {
    const Program *program;
    const CpuKernels *kernels;
    uint8_t *arena;
    Matmul *
        *matmuls; /* [operation_count]; NULL where the operation is none. Equal ones are shared. */
    Matmul **owned; /* each prepared product once */
    int owned_count;
    double *profile; /* seconds by operation, or NULL */
};

/* The address of an operand; NULL for none. */
static inline void *operand_address(const Executor *executor, Operand operand) {
    if (operand.buffer < 0) return NULL;
    const Buffer *buffer = &executor->program->buffers[operand.buffer];
    return executor->arena + buffer->offset + operand.offset * dtype_size(buffer->dtype);
}

/* Runs operation number `index`. */
bool run_operation(Executor *executor, int index, const StepScalars *scalars, Error *error);

/* How the product adds, once addresses are known: in place when the addend is where out is. */
MatmulAddend matmul_addend(const void *out, const void *addend);
MatmulTypes matmul_types(const Program *program, const Operation *operation);

#endif
