/* The options that decide a training run, shared by `train` and `plan`, and what they resolve to. */
#ifndef HEARTH_CMD_TRAIN_OPTIONS_H
#define HEARTH_CMD_TRAIN_OPTIONS_H

#include "cmd/options.h"
#include "train/settings.h"

enum { TRAIN_OPTIONS_MOST = 80 };

/* AdamW's. */
#define DEFAULT_BETA1 0.9
#define DEFAULT_BETA2 0.95
#define DEFAULT_EPSILON 1e-8

/* Muon's, and those of nanochat's recipe before they are scaled. */
#define DEFAULT_MATRIX_LR 0.02
#define DEFAULT_EMBEDDING_LR 0.3
#define DEFAULT_UNEMBEDDING_LR 0.008
#define DEFAULT_SCALAR_LR 0.5

/* The values as given: 0, -1 or NULL where they are left to hearth. */
typedef struct TrainOptions {
    const char *model, *window_pattern;
    int64_t layers, dim, heads, kv_heads, head_dim, ffn, sequence_length, vocab, window;
    double rope_theta;
    bool tied;

    const char *data, *run_directory, *init_from, *packing;
    bool resume, document_mask;

    int64_t steps, tokens;
    double tokens_per_param, flops;
    int64_t batch_tokens, micro_batch, logit_chunk, memory;
    const char *precision, *recompute, *offload, *optimizer_state, *device;
    int64_t seed, threads;

    const char *optimizer, *schedule;
    double lr, matrix_lr, embedding_lr, unembedding_lr, scalar_lr, recipe_ratio;
    double lr_floor, cooldown, beta1, beta2, epsilon, weight_decay, clip;
    int64_t warmup;

    int64_t checkpoint_every, keep, stop_after;
    double checkpoint_interval;
    int64_t eval_every, eval_tokens, sample_every, sample_tokens;
    const char *core;
    int64_t core_every, core_max_per_task;
    const char *sample_prompt;

    Option table[TRAIN_OPTIONS_MOST];
} TrainOptions;

/* Sets the defaults and builds the table, which points into *options: it must not move. */
void train_options_init(TrainOptions *options);

/* Paths from the root, where they are of something: a run goes on from wherever it is resumed. */
bool train_options_make_absolute(TrainOptions *options, Error *error);

/* Works out the settings. `vocab` is the dataset's vocabulary, or 0 when there is no dataset. Afterwards
 * the options hold the resolved values, as config.yaml records them. */
bool train_options_resolve(TrainOptions *options, uint32_t vocab, TrainSettings *settings,
                           Error *error);

#endif
