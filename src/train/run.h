/* A run at work: everything that is open while it trains. Shared by the files of this room. */
#ifndef HEARTH_TRAIN_RUN_H
#define HEARTH_TRAIN_RUN_H

#include "eval/inference.h"
#include "train/metrics.h"
#include "train/run_directory.h"
#include "train/step_plan.h"
#include "train/tensorboard.h"

typedef struct Run {
    const TrainSettings *settings;
    const Dataset *dataset;
    const Tokenizer *tokenizer;
    char tokenizer_hash[SHA256_TEXT];

    RunDirectory directory;
    bool directory_open, log_open, board_open;
    MetricsLog log;
    TensorBoard board;

    StepPlan plan;
    Executor *executor;
    Loader *loader;
    Inference inference; /* evaluation and samples run in the same program */

    int64_t step;   /* optimizer steps done */
    int64_t tokens; /* trained on */
    int64_t sample; /* absolute number of the next row of data: the loader's whole position */
    double checkpoint_wait; /* seconds, since the last step was logged */
} Run;

/* Opens the run directory and the dataset's loader, plans, and sets weights and position: initial ones,
 * those of init_from, or those of the latest checkpoint. On failure the run is closed. */
bool run_open(Run *run, const TrainSettings *settings, const Dataset *dataset,
              const Tokenizer *tokenizer, const char *config, Error *error);
void run_close(Run *run);

/* Writes a checkpoint of the current step and prunes old ones. */
bool run_save(Run *run, Error *error);

/* The latest checkpoint of a run, checked against what is to be trained. */
typedef struct Restored {
    char *path; /* NULL: the run starts anew */
    json_t *state;
} Restored;

/* Opens train_state.json of the latest checkpoint and refuses another model, tokenizer, dataset or order
 * of data; sets the run's step, tokens and sample. */
bool state_restore(Run *run, Restored *restored, Error *error);
json_t *state_to_json(const Run *run, Error *error);

/* Of train_state.json. Version 1 did not record what attention sees. */
enum { STATE_VERSION = 2, STATE_BYTES_MAX = 1 << 20 };

#endif
