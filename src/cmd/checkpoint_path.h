/* What --checkpoint may name. */
#ifndef HEARTH_CMD_CHECKPOINT_PATH_H
#define HEARTH_CMD_CHECKPOINT_PATH_H

#include "base/error.h"

/* A model's directory as it is; for a run's directory that of its latest whole checkpoint. A new
 * string, or NULL with an error. */
char *checkpoint_path(const char *directory, Error *error);

#endif
