/* Checkpoints: a Hugging Face model directory, and beside it what exact resume needs.
 *
 *     step-00001000/
 *         config.json  model.safetensors  generation_config.json
 *         tokenizer.json  tokenizer_config.json
 *         optimizer.safetensors  train_state.json
 *         manifest.json    every other file's size and SHA-256
 *
 * It is written as .step-00001000.tmp, every file flushed to disk, the manifest last, then renamed:
 * a reader sees a whole checkpoint or none, whatever fails and whenever the process is killed. */
#ifndef HEARTH_TRAIN_CHECKPOINT_H
#define HEARTH_TRAIN_CHECKPOINT_H

#include "base/json.h"
#include "files/safetensors.h"

enum { CHECKPOINT_NAME = 32, CHECKPOINT_STEP_MAX = 99999999 };

typedef struct CheckpointContents {
    int64_t step;
    const Tensor *model, *optimizer;
    int model_count, optimizer_count;
    const json_t *config;     /* config.json */
    const json_t *generation; /* generation_config.json; NULL: none */
    const json_t *state;      /* train_state.json */
    const char *tokenizer;    /* a directory whose tokenizer files are copied; NULL: none */
} CheckpointContents;

/* Writes the checkpoint into the directory `checkpoints`. On failure what it wrote is removed and
 * the other checkpoints are as they were. A whole checkpoint of that step is left as it is; a
 * damaged one is replaced. */
bool checkpoint_write(const char *checkpoints, const CheckpointContents *contents, Error *error);

/* Whether the directory is what its manifest says: all files there, of the right size and, with
 * `checksums`, of the right SHA-256 (which reads every byte). */
bool checkpoint_verify(const char *path, bool checksums, Error *error);

typedef enum CheckpointUse {
    CHECKPOINT_WEIGHTS, /* to evaluate, generate or start from; any Hugging Face model will do */
    CHECKPOINT_RESUME,  /* to continue exactly: everything must be there */
} CheckpointUse;

typedef struct Checkpoint {
    Safetensors model;
    Safetensors optimizer; /* these two only with CHECKPOINT_RESUME */
    json_t *state;
} Checkpoint;

/* A manifest is held against the files' sizes; their checksums are checkpoints_latest()'s work, so
 * that a resume reads every byte once. config.json and the tokenizer are read by
 * model_config_load() and tokenizer_open() of that path. */
bool checkpoint_open(Checkpoint *checkpoint, const char *path, CheckpointUse use, Error *error);
void checkpoint_close(Checkpoint *checkpoint);

/* "step-00001000" */
char *checkpoint_name(char out[CHECKPOINT_NAME], int64_t step);
/* The step in such a name; -1 when it is not one. */
int64_t checkpoint_step(const char *name);

#endif
