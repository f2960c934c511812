/* The training program of given settings, planned: what `train` runs and `plan` reports. */
#ifndef HEARTH_TRAIN_STEP_PLAN_H
#define HEARTH_TRAIN_STEP_PLAN_H

#include <stdio.h>

#include "step/planner.h"
#include "train/settings.h"

typedef struct StepPlan {
    Plan plan;
    Program program;
    const Backend *backend;
    Device device;
    int64_t process_bytes; /* what the process takes beside the arena: libraries, loader, buffers */
} StepPlan;

/* Plans for the device given, or for this machine (`device` NULL), then measured for the predictions.
 * Arena and process together stay within settings->memory, or 85% of the device's memory. */
bool step_plan_make(StepPlan *plan, const TrainSettings *settings, const Backend *backend,
                    const Device *device, Error *error);
void step_plan_free(StepPlan *plan);

/* Bytes that the whole process will take at its peak: the memory table's last line. */
int64_t step_plan_peak(const StepPlan *plan);

/* Model FLOPs of one token of training, forward and backward, attention counted exactly. */
double step_plan_flops_per_token(const StepPlan *plan);

/* The memory table, the choices and the predicted time, as lines of text. */
void step_plan_print(const StepPlan *plan, const TrainSettings *settings, FILE *file);

#endif
