/* What an operation costs: arithmetic, memory traffic, and the time both predict on a device. */
#ifndef HEARTH_STEP_COST_H
#define HEARTH_STEP_COST_H

#include "step/device.h"
#include "step/program.h"

typedef struct Cost {
    double flops;  /* arithmetic done */
    double useful; /* the part that the model itself needs: no recomputation, no optimizer */
    double bytes;  /* read and written, each operand once */
    bool matrix;   /* runs on the matrix units */
} Cost;

Cost operation_cost(const Program *program, const Operation *operation);
double operation_seconds(const Program *program, const Operation *operation, const Device *device);

/* Sum over a section. */
Cost section_cost(const Program *program, SectionKind section);

/* What a section takes. Copies to and from host memory run beside it, one after the other; where the step
 * waits for one, what is left of it counts. by_kind [OPERATION_KINDS], unless NULL, gets the kinds' parts
 * added. */
double section_seconds(const Program *program, SectionKind section, const Device *device,
                       double *by_kind);

/* What of the update is Muon's, its matmuls included; copies of its state are not. */
double muon_seconds(const Program *program, const Device *device);

/* Pairs of a query and a key that it sees in one row of T with a window: causal, exact. */
double attention_pairs(int64_t T, int64_t window);

#endif
