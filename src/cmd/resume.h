/* --resume: a run goes on as its config.yaml has it, but for what the command line says. */
#ifndef HEARTH_CMD_RESUME_H
#define HEARTH_CMD_RESUME_H

#include "cmd/train_options.h"

/* Refuses --resume without a run, or with weights from elsewhere. */
bool resume_check_usage(const TrainOptions *options, Error *error);

/* Takes what is not given from config.yaml, whose paths are absolute, as those given must be. A horizon that is
 * given stands for the one recorded there, whichever way each is put; --model and --optimizer may only say
 * what is recorded. */
bool resume_read_options(TrainOptions *options, Error *error);

/* Warns of each option that makes the training another one than config.yaml has it. The options are
 * resolved, as those recorded are. */
bool resume_warn_of_changes(const TrainOptions *options, Error *error);

#endif
