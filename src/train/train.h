/* Training: a run from its settings to its last checkpoint. */
#ifndef HEARTH_TRAIN_TRAIN_H
#define HEARTH_TRAIN_TRAIN_H

#include "data/dataset.h"
#include "text/tokenizer.h"
#include "train/settings.h"

typedef struct TrainResult {
    int64_t steps;            /* optimizer steps of the whole run so far */
    double loss;              /* of the last step; NaN when none was done */
    double tokens_per_s;      /* median over the steps of this invocation */
    double val_loss, val_bpb; /* of the last evaluation; NaN when there was none */
    double core;              /* of the last evaluation of CORE; NaN when there was none */
    int64_t planned_bytes;    /* the memory table's peak */
    bool interrupted;         /* a signal ended it; what was done is saved */
} TrainResult;

/* Trains until the settings' last step, a signal or an error, with checkpoints on the way and one at the
 * end. `config` is the text of config.yaml. */
bool train(const TrainSettings *settings, const Dataset *dataset, const Tokenizer *tokenizer,
           const char *config, TrainResult *result, Error *error);

#endif
