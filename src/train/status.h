/* The status line: where a run stands, how fast it goes and when it ends. */
#ifndef HEARTH_TRAIN_STATUS_H
#define HEARTH_TRAIN_STATUS_H

#include "train/metrics.h"

typedef struct Status {
    double started, shown; /* seconds_now() */
    int64_t first_step, last_step;
} Status;

/* For steps first_step + 1 to last_step of this invocation. */
Status status_start(int64_t first_step, int64_t last_step);

/* On a terminal rewrites the line at each step; through a pipe prints a line at the first and the last
 * step and every few seconds between. */
void status_show(Status *status, const StepMetrics *metrics);

#endif
