/* hearth eval --core: the CORE metric, as a table, JSON, CSV and example by example. */
#ifndef HEARTH_CMD_EVAL_CORE_H
#define HEARTH_CMD_EVAL_CORE_H

#include "step/backend.h"

typedef struct EvalCoreOptions {
    const char *bundle;        /* its directory */
    const char *csv, *details; /* files to write; NULL = none */
    int64_t max_per_task;      /* examples; 0 = all */
} EvalCoreOptions;

/* Evaluates the checkpoint in `directory` and prints the result. */
bool eval_core(const char *directory, const Backend *backend, Dtype storage,
               const EvalCoreOptions *options, Error *error);

#endif
