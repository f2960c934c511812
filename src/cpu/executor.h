/* A program at work on the CPU; shared by backend.c and operations.c. */
#ifndef HEARTH_CPU_EXECUTOR_H
#define HEARTH_CPU_EXECUTOR_H

#include "cpu/kernels.h"
#include "step/backend.h"

struct Executor {
    const Program *program;
    const CpuKernels *kernels;
    uint8_t *arenas[SPACES]; /* that of the host only separates what is offloaded */
    double *profile;         /* seconds by operation, or NULL */
};

/* The address of an operand; NULL for none. */
static inline void *operand_address(const Executor *executor, Operand operand) {
    if (operand.buffer < 0) return NULL;
    MemorySpace space = executor->program->buffers[operand.buffer].space;
    return executor->arenas[space] + program_place(executor->program, operand);
}

/* Runs operation number `index`. */
void run_operation(Executor *executor, int index, const StepScalars *scalars);

#endif
