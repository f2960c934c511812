/* What --checkpoint and --init-from may name. */
#ifndef HEARTH_CMD_CHECKPOINT_PATH_H
#define HEARTH_CMD_CHECKPOINT_PATH_H

#include "base/error.h"

/* A model's directory as it is; for a run's directory that of its latest whole checkpoint. NULL with
 * an error. The string stays until the process ends, as those of options do. */
const char *checkpoint_path(const char *directory, Error *error);

/* Whether it is a model's directory; whether it is a run's, and no model's. */
bool path_is_model(const char *directory);
bool path_is_run(const char *directory);

#endif
