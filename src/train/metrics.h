/* log.jsonl: one JSON object a line, for `hearth compare`, plots and people.
 *
 * Four kinds of line: a step (keys as in StepMetrics), an evaluation (step, val_loss, val_bpb), the CORE
 * metric (step, core, core_tasks, core_tasks_of_bundle) and an event (event, step, message). The file is
 * only ever appended to, with one write() a line, so that a kill loses nothing. A resumed run appends to
 * the same file: lines of steps after the checkpoint it resumed from stay, an event line
 * {"event": "resume", "step": N} follows, and then those steps again. A reader takes the last line of a
 * step. Values that are not finite are written as null.
 *
 * Logging never stops training: a write that fails warns once, and later lines are still tried. */
#ifndef HEARTH_TRAIN_METRICS_H
#define HEARTH_TRAIN_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct StepMetrics {
    int64_t step;         /* optimizer steps done, this one included */
    int64_t tokens;       /* trained on, this step included */
    double epoch;         /* passes over the data, with fraction */
    double loss;          /* mean over the step's target tokens, nats */
    double lr, grad_norm; /* the norm before clipping */
    double step_ms, tokens_per_s;
    double mfu; /* share of the device's peak, 0 to 1 */
    double data_wait_ms, checkpoint_wait_ms;
    int64_t mem_bytes;
} StepMetrics;

typedef struct MetricsLog {
    int file;
    bool torn; /* the last line was written in part: the next starts on a fresh line */
    bool warned;
} MetricsLog;

bool metrics_open(MetricsLog *log, const char *path, Error *error);
void metrics_close(MetricsLog *log);

void metrics_step(MetricsLog *log, const StepMetrics *metrics);
void metrics_evaluation(MetricsLog *log, int64_t step, double val_loss, double val_bpb);
void metrics_core(MetricsLog *log, int64_t step, double core, size_t tasks, size_t tasks_of_bundle);
/* `event` is a word: "start", "resume", "checkpoint", "skip", … */
void metrics_event(MetricsLog *log, const char *event, int64_t step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
