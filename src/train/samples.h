/* Samples during training. */
#ifndef HEARTH_TRAIN_SAMPLES_H
#define HEARTH_TRAIN_SAMPLES_H

#include "eval/inference.h"
#include "train/settings.h"

/* Prints what the model writes after settings->sample_prompt. */
bool print_sample(const Inference *inference, const TrainSettings *settings, int64_t step,
                  Error *error);

#endif
