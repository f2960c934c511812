/* The CORE metric's bundle, as `train` and `plan` have it. */
#ifndef HEARTH_CMD_CORE_OPTIONS_H
#define HEARTH_CMD_CORE_OPTIONS_H

#include "cmd/train_options.h"
#include "eval/core.h"

/* Opens the bundle of --core, if it is given, in the tokens of the dataset's tokenizer (NULL: it has none),
 * and puts it into the settings. core_close() it even when none was given. */
bool core_options_open(const TrainOptions *options, const Tokenizer *tokenizer,
                       TrainSettings *settings, Core *core, Error *error);

#endif
