/* Evaluation of a run at work, in its own program and planned memory. */
#ifndef HEARTH_TRAIN_EVALUATION_H
#define HEARTH_TRAIN_EVALUATION_H

#include "train/run.h"
#include "train/train.h"

/* Loss and bits per byte of the validation split. */
bool evaluate_validation(Run *run, TrainResult *result, Error *error);

/* The CORE metric. A signal ends it early, without a result. */
bool evaluate_core(Run *run, TrainResult *result, Error *error);

#endif
