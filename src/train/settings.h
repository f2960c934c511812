/* Everything that decides a training run, resolved: what config.yaml records and the loop obeys. */
#ifndef HEARTH_TRAIN_SETTINGS_H
#define HEARTH_TRAIN_SETTINGS_H

#include "data/loader.h"
#include "eval/core.h"
#include "model/config.h"
#include "optim/optimizer.h"
#include "optim/recipe.h"
#include "optim/schedule.h"
#include "step/backend.h"

enum { LOADER_RING = 4 }; /* batches that are ready ahead of the step */

typedef struct TrainSettings {
    const Backend *backend; /* what it runs on */
    ModelConfig model;      /* its sequence_length is T */
    Dtype storage;          /* of the precision recipe: fp32 or bf16 */
    uint64_t seed;

    /* The batch and the horizon. */
    int64_t batch_tokens; /* of an optimizer step; a multiple of T */
    int64_t steps;

    /* Left to the planner where 0 or -1. */
    int64_t micro_batch, logit_chunk;
    int recompute, offload, optimizer_state;
    int64_t memory; /* bytes the process may take; 0 = most of what is available */

    OptimizerSettings optimizer; /* its state format is the planner's choice */
    Schedule schedule;
    Recipe recipe;       /* nanochat's, which batch, rates and decay come from */
    double recipe_ratio; /* tokens for each parameter that it is made for; 0 = no recipe */

    const char *data; /* the dataset's directory */
    Packing packing;
    bool document_mask;

    const char *run_directory;
    const char *init_from; /* a checkpoint whose weights to start from, or NULL */
    bool resume;
    int64_t stop_after;              /* steps of this invocation; 0 = to the end */
    int64_t checkpoint_every;        /* steps; 0 = only at the end */
    double checkpoint_seconds;       /* also after so long; 0 = not */
    int64_t keep;                    /* checkpoints; 0 = all */
    int64_t eval_every, eval_tokens; /* steps; tokens of an evaluation, 0 = all */
    const Core *core; /* the questions of the CORE metric, also asked at the end; NULL: none */
    int64_t core_every;
    int64_t sample_every, sample_tokens;
    const char *sample_prompt;
} TrainSettings;

static inline bool settings_have_recipe(const TrainSettings *settings) {
    return settings->recipe_ratio > 0;
}

/* Sequences of an optimizer step. */
static inline int64_t settings_rows(const TrainSettings *settings) {
    return settings->batch_tokens / settings->model.sequence_length;
}

#endif
