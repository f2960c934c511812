/* A directory that appears whole or not at all. */
#ifndef HEARTH_DATA_OUTPUT_H
#define HEARTH_DATA_OUTPUT_H

#include <stdbool.h>

#include "base/error.h"

typedef struct Output {
    char *target;  /* what it will be called */
    char *working; /* where it is made: "TARGET.building" */
    int lock;      /* the working directory, locked against another build */
    bool replace;
} Output;

/* Creates the working directory. A target that has something in it is refused, unless `overwrite` is
 * given and it is a dataset. */
bool output_open(Output *output, const char *target, bool overwrite, Error *error);
/* Gives the working directory its name, in place of what was there. Release with output_close() after
 * success too. */
bool output_publish(Output *output, Error *error);
/* Removes what has not been published. */
void output_close(Output *output);

#endif
