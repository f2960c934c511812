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
    int64_t staging_bytes; /* of the device, beside the arena: what copies go through */
    int64_t pinned_bytes;  /* of the host: what is offloaded, and what copies go through */
    int64_t process_bytes; /* libraries, loader, buffers: where that is the device's memory too */
} StepPlan;

/* Plans for the device given, or for this machine's (`device` NULL), then measured for the predictions.
 * All that is taken of the device's memory stays within settings->memory, or 85% of it. */
bool step_plan_make(StepPlan *plan, const TrainSettings *settings, const Backend *backend,
                    const Device *device, Error *error);
void step_plan_free(StepPlan *plan);

typedef struct MemoryRow {
    const char *name;
    int64_t bytes;
} MemoryRow;

/* The memory table: rows that add up to what will be taken of the device's memory at the peak. */
enum { MEMORY_ROWS = BUFFER_KINDS + 4 };
void step_plan_memory(const StepPlan *plan, MemoryRow rows[MEMORY_ROWS]);
int64_t step_plan_peak(const StepPlan *plan);

/* Bytes taken now: what was asked of a GPU, or on the CPU what is resident. */
int64_t step_plan_taken(const StepPlan *plan);

/* Model FLOPs of one token of training, forward and backward, attention counted exactly. */
double step_plan_flops_per_token(const StepPlan *plan);

/* The memory table, the choices and the predicted time, as lines of text. */
void step_plan_print(const StepPlan *plan, const TrainSettings *settings, FILE *file);

#endif
