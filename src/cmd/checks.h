/* What `hearth doctor` looks at, one row for each thing. */
#ifndef HEARTH_CMD_CHECKS_H
#define HEARTH_CMD_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/report.h"

typedef enum CheckState {
    CHECK_GOOD,
    CHECK_NOTE, /* worth knowing, or could be better */
    CHECK_FIX,  /* must be put right */
} CheckState;

typedef struct Check {
    CheckState state;
    const char *group, *name;
    char found[1100];
    char remedy[512]; /* empty where there is nothing to do */
} Check;

typedef struct Checks {
    Check rows[32];
    int count;
} Checks;

/* Adds a good row. */
Check *checks_add(Checks *checks, const char *group, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Changes what a row says is to be done. */
void check_advise(Check *check, CheckState state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void check_processor(Checks *checks);
/* The disk that `directory`, which need not be there yet, will be on. */
void check_disk(Checks *checks, const char *directory);
void check_limits(Checks *checks);
void check_gpu(Checks *checks, const CudaReport *report);

#endif
