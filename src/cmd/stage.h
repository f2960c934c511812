/* A verb run from within another, as if it had been typed: the demo is made of these. */
#ifndef HEARTH_CMD_STAGE_H
#define HEARTH_CMD_STAGE_H

#include "base/error.h"
#include "base/json.h"

/* Prints the command, runs the verb in a process of its own with --json, and returns what it wrote on
 * stdout: NULL with an error when it failed, by its own account on stderr. The command line is `words`,
 * without "hearth", then `inputs`; each list ends with NULL. Call it before this process has started any
 * thread. */
json_t *stage_run(int (*verb)(int argc, char **argv), const char *const *words,
                  const char *const *inputs, Error *error);

#endif
