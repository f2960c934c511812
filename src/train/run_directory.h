/* A run's directory, and the checkpoints in it:
 *
 *     runs/NAME/
 *         config.yaml  log.jsonl  tensorboard/  checkpoints/
 *         lock             held with flock() by the process that trains, its pid inside */
#ifndef HEARTH_TRAIN_RUN_DIRECTORY_H
#define HEARTH_TRAIN_RUN_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct RunDirectory {
    char *config, *log, *tensorboard, *checkpoints; /* paths */
    int lock;
} RunDirectory;

/* Creates what is missing, takes the lock, writes and deletes a probe file in checkpoints/, and
 * removes what a killed run left half-written there. A lock outlives no process, so there are no
 * stale ones. */
bool run_directory_open(RunDirectory *run, const char *path, Error *error);
void run_directory_close(RunDirectory *run);

/* Fails when the disk that holds the checkpoints has less than `bytes` free, and says how much. */
bool run_directory_check_space(const RunDirectory *run, int64_t bytes, Error *error);

/* The steps of the directory's checkpoints, ascending, whole or not; free() the array. */
bool checkpoints_list(const char *checkpoints, int64_t **steps, size_t *count, Error *error);

/* The path of the newest whole checkpoint, checksums verified; damaged ones are passed over with a
 * warning. NULL with an error when there is none. */
char *checkpoints_latest(const char *checkpoints, Error *error);

/* Removes all but the `keep` newest whole checkpoints (0 = keep all). */
bool checkpoints_prune(const char *checkpoints, int64_t keep, Error *error);

#endif
