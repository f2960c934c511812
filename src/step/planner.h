/* The planner: chooses micro-batch, recompute, logit chunk, optimizer state and offload so that the step fits
 * the memory and is predicted fastest. */
#ifndef HEARTH_STEP_PLANNER_H
#define HEARTH_STEP_PLANNER_H

#include "step/backend.h"
#include "step/offload.h"
#include "step/recompute.h"

typedef struct PlanChoice {
    int64_t micro_batch; /* rows of T tokens */
    RecomputeLevel recompute;
    Offload offload;
    int64_t logit_chunk; /* tokens */
    StateFormat state;
} PlanChoice;

typedef struct PlanRequest {
    const Backend *backend;
    const Device *device;
    int64_t memory;      /* bytes that the program may take of the device */
    int64_t beside;      /* bytes of the device kept beside these: with them it is --memory */
    int64_t host_memory; /* bytes that offload may take of host memory */
    int64_t rows;        /* sequences of an optimizer step */
    int64_t sequence_length;

    /* What is fixed; 0 or -1 leaves it to the planner. A micro-batch divides the rows. */
    int64_t micro_batch, logit_chunk;
    int recompute, offload, state;

    /* Writes the whole program for a choice, all but recompute and offload. */
    bool (*write)(Program *program, const PlanChoice *choice, void *context, Error *error);
    void *context;
} PlanRequest;

typedef struct Plan {
    PlanChoice choice;
    double seconds; /* predicted, of an optimizer step */
} Plan;

/* Chooses and leaves the laid-out program in *program (program_free() it). The optimizer state is kept in
 * the most exact format with which anything fits. When nothing does, the error says what the smallest
 * plan takes, with which --memory it fits, and what else would help. */
bool plan_step(const PlanRequest *request, Plan *plan, Program *program, Error *error);

/* Bytes of the device's memory that a laid-out program takes: the arena and what the backend asks for
 * beside it; where host memory is the same, also what is offloaded and pinned. */
int64_t program_device_bytes(const Program *program, const Backend *backend, const Device *device);

/* Predicted seconds of an optimizer step of `rows` sequences. */
double plan_seconds(const Program *program, int64_t rows, const Device *device);

/* Bytes of the device alive at the worst moment, before workspaces and gaps: a lower bound of the arena.
 * Sets the lifetimes. -1 with an error. */
int64_t program_live_bytes(Program *program, Error *error);

#endif
