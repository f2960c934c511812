/* The parts of train_options_resolve(): each works out some of the settings. */
#ifndef HEARTH_CMD_RESOLVE_H
#define HEARTH_CMD_RESOLVE_H

#include "cmd/train_options.h"

/* The model: what --model names, or the checkpoint of --init-from, with the overrides. `vocab` is the
 * dataset's, or 0. */
bool resolve_model(TrainOptions *options, uint32_t vocab, ModelConfig *config, Error *error);

/* Gives the options that depend on the model their values where they were not given. */
bool resolve_defaults(TrainOptions *options, const ModelConfig *config, Error *error);

/* nanochat's recipe, when the model and the optimizer are its own: the batch if batch_tokens is 0, and the
 * rates and the decay for it. */
bool resolve_recipe(const TrainOptions *options, int64_t batch_tokens, TrainSettings *settings,
                    Error *error);

/* The optimizer and the schedule, once batch and horizon are known. */
void resolve_optimizer(const TrainOptions *options, TrainSettings *settings);

#endif
