/* From what a user names to the files that are read. */
#ifndef HEARTH_DATA_INPUTS_H
#define HEARTH_DATA_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Inputs {
    char **paths; /* files, and "-" */
    size_t count, capacity;
    uint64_t bytes; /* of all files; 0 if one is a pipe */
    bool piped;
} Inputs;

/* Expands files, directories, patterns and "-" in the order given. `wanted` says which files of a
 * directory are taken, by name; `wanted_text` names them in messages. */
bool inputs_find(Inputs *inputs, const char *const *names, int count,
                 bool (*wanted)(const char *name), const char *wanted_text, Error *error);
void inputs_free(Inputs *inputs);

#endif
