/* A backend runs programs: a table from operation kind to function, behind these few calls. */
#ifndef HEARTH_STEP_BACKEND_H
#define HEARTH_STEP_BACKEND_H

#include "step/device.h"
#include "step/program.h"

/* A program laid out in memory on one device, ready to run. */
typedef struct Executor Executor;

typedef struct Backend {
    const char *name; /* "cpu", "cuda" */

    /* Scratch bytes that an operation of the program needs while it runs; -1 with an error when it
     * cannot be run here. */
    int64_t (*workspace)(const Program *program, const Operation *operation, Error *error);

    /* What this machine's device is worth on paper: the same every time, so that plans are too. */
    bool (*describe)(Device *device, Dtype storage, Error *error);
    /* Replaces the figures by what is measured now (under half a second, with at most about `memory`
     * bytes), for predictions and MFU. */
    bool (*measure)(Device *device, Dtype storage, int64_t memory, Error *error);

    /* What open() asks for beside the arena: memory of the device, and pinned memory of the host. */
    void (*beside)(const Program *program, int64_t *device_bytes, int64_t *pinned_bytes);

    /* Allocates the arena (zeroed) and prepares every operation; nothing is allocated later. The
     * program must be laid out and outlive the executor. */
    Executor *(*open)(const Program *program, Error *error);
    void (*close)(Executor *executor);

    /* The three below do their work in the order they are called in. Running and uploading may return
     * before it is done: what fails then is reported by a later run or download. */

    /* Runs the operations of one section in order. */
    bool (*run)(Executor *executor, SectionKind section, const StepScalars *scalars, Error *error);

    /* Copies `bytes` bytes into a buffer from `offset` bytes on; the data may be reused at once. */
    void (*upload)(Executor *executor, int buffer, int64_t offset, const void *data, int64_t bytes);

    /* Waits for all work before it, then copies out of a buffer. */
    bool (*download)(Executor *executor, int buffer, int64_t offset, void *data, int64_t bytes,
                     Error *error);

    /* Seconds spent in each operation since `seconds` [operation_count] was given; NULL ends it. */
    void (*profile)(Executor *executor, double *seconds);
} Backend;

/* How the program's arena is laid out: sets every buffer's lifetime and offset, adds the workspace
 * buffers that the backend asks for, and fills arena_bytes and kind_bytes. Buffers that are never alive
 * together share memory; an operation that may work in place does so where its input dies. */
bool layout_program(Program *program, const Backend *backend, Error *error);

#endif
