/* The training step that a bench program works on: chosen by the options of `hearth train`, planned as
 * `hearth train` plans it. */
#ifndef HEARTH_BENCH_WORKLOAD_H
#define HEARTH_BENCH_WORKLOAD_H

#include "cmd/train_options.h"
#include "train/step_plan.h"

typedef struct Workload {
    TrainOptions options;
    TrainSettings settings;
    StepPlan plan;
} Workload;

/* The main() of a bench program: parses the options of `hearth train` and the program's `own` (ended by an
 * empty row), plans, and runs. Returns the exit status. */
int workload_main(const Command *command, const Option *own,
                  bool (*run)(Workload *workload, Error *error), int argc, char **argv);

/* Prints the object on standard output and frees it. */
void workload_print(json_t *json);

/* Micro-batches of an optimizer step. */
int64_t workload_micro_batches(const Workload *workload);

/* Operations whose time is that of equal work: one kind, and for a matmul one role and one shape. */
bool workload_alike(const Operation *a, const Operation *b);

/* "matmul input gradient" */
const char *workload_label(const Operation *operation);

/* The middle value (of an even count the lower one); reorders them. */
double median(double *values, size_t count);

#endif
