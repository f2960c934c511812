/* Samples during training. */
#ifndef HEARTH_TRAIN_SAMPLES_H
#define HEARTH_TRAIN_SAMPLES_H

#include "eval/inference.h"
#include "train/settings.h"

/* Finds out before training whether print_sample() will be able to: the prompt must leave room in a
 * sequence. Without a tokenizer there are no samples, which is said. */
bool sample_check(const Tokenizer *tokenizer, const TrainSettings *settings, Error *error);

/* Prints what the model writes after settings->sample_prompt. */
bool print_sample(const Inference *inference, const TrainSettings *settings, int64_t step,
                  Error *error);

#endif
