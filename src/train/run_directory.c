#include "train/run_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/units.h"
#include "train/checkpoint.h"

/* ---- Opening ---- */

static bool lock_is_held(int lock, const char *path, Error *error) {
    char pid[24] = "";
    ssize_t size = pread(lock, pid, sizeof pid - 1, 0);
    pid[size > 0 ? strspn(pid, "0123456789") : 0] = 0;
    return fail(error, "%s is in use by process %s; stop that run or choose another directory",
                path, *pid ? pid : "(unknown)");
}

static bool take_lock(RunDirectory *run, const char *path, Error *error) {
    char *file = path_join(path, "lock", error);
    if (!file) return false;
    run->lock = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    bool done = run->lock >= 0 || fail_errno(error, "cannot create %s", file);
    if (done && flock(run->lock, LOCK_EX | LOCK_NB) != 0)
        done = errno == EWOULDBLOCK ? lock_is_held(run->lock, path, error)
                                    : fail_errno(error, "cannot lock %s", file);
    if (done && (ftruncate(run->lock, 0) != 0 || dprintf(run->lock, "%d\n", (int)getpid()) < 0))
        done = fail_errno(error, "cannot write %s", file);
    free(file);
    return done;
}

/* Permission bits do not say whether a write succeeds (quota, read-only disk): a write does. */
static bool probe(const char *directory, Error *error) {
    char *path = path_join(directory, ".probe", error);
    bool done = path && file_write(path, "probe", 5, error);
    if (done && unlink(path) != 0) done = fail_errno(error, "cannot remove %s", path);
    free(path);
    return done;
}

static bool is_leftover(const char *name) {
    size_t length = strlen(name);
    return length > 10 && strncmp(name, ".step-", 6) == 0 && strcmp(name + length - 4, ".tmp") == 0;
}

static bool remove_leftovers(const char *checkpoints, Error *error) {
    DIR *directory = opendir(checkpoints);
    if (!directory) return fail_errno(error, "cannot read %s", checkpoints);
    bool done = true;
    for (struct dirent *entry; done && (entry = readdir(directory));) {
        if (!is_leftover(entry->d_name)) continue;
        char *path = path_join(checkpoints, entry->d_name, error);
        done = path && directory_remove(path, error);
        free(path);
    }
    closedir(directory);
    return done;
}

bool run_directory_open(RunDirectory *run, const char *path, Error *error) {
    *run = (RunDirectory){.lock = -1};
    bool done = directory_create(path, error) && take_lock(run, path, error) &&
                (run->config = path_join(path, "config.yaml", error)) &&
                (run->log = path_join(path, "log.jsonl", error)) &&
                (run->tensorboard = path_join(path, "tensorboard", error)) &&
                (run->checkpoints = path_join(path, "checkpoints", error)) &&
                directory_create(run->tensorboard, error) &&
                directory_create(run->checkpoints, error) && probe(run->checkpoints, error) &&
                remove_leftovers(run->checkpoints, error);
    if (!done) run_directory_close(run);
    return done;
}

void run_directory_close(RunDirectory *run) {
    if (run->lock >= 0) close(run->lock);
    free(run->config);
    free(run->log);
    free(run->tensorboard);
    free(run->checkpoints);
    *run = (RunDirectory){.lock = -1};
}

bool run_directory_check_space(const RunDirectory *run, int64_t bytes, Error *error) {
    struct statvfs disk;
    char free_text[32], need_text[32];
    if (statvfs(run->checkpoints, &disk) != 0)
        return fail_errno(error, "cannot read the free space of %s", run->checkpoints);
    double available = (double)disk.f_bavail * (double)disk.f_frsize;
    if (available >= (double)bytes) return true;
    return fail(error,
                "%s has %s free; %s are needed: free some space, or lower --keep or the "
                "checkpoint interval",
                run->checkpoints, format_bytes(free_text, (int64_t)available),
                format_bytes(need_text, bytes));
}

/* ---- Checkpoints ---- */

static int compare_steps(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

bool checkpoints_list(const char *checkpoints, int64_t **steps, size_t *count, Error *error) {
    *steps = NULL, *count = 0;
    size_t capacity = 0;
    DIR *directory = opendir(checkpoints);
    if (!directory) return fail_errno(error, "cannot read %s", checkpoints);
    bool done = true;
    for (struct dirent *entry; done && (entry = readdir(directory));) {
        int64_t step = checkpoint_step(entry->d_name);
        if (step < 0) continue;
        done = reserve(steps, &capacity, *count + 1, sizeof **steps, error);
        if (done) (*steps)[(*count)++] = step;
    }
    closedir(directory);
    if (done && *count) qsort(*steps, *count, sizeof **steps, compare_steps);
    if (!done) free(*steps), *steps = NULL, *count = 0;
    return done;
}

static char *checkpoint_path(const char *checkpoints, int64_t step, Error *error) {
    char name[CHECKPOINT_NAME];
    return path_join(checkpoints, checkpoint_name(name, step), error);
}

char *checkpoints_latest(const char *checkpoints, Error *error) {
    int64_t *steps;
    size_t count;
    if (!checkpoints_list(checkpoints, &steps, &count, error)) return NULL;
    fail(error, "%s holds no checkpoint", checkpoints);
    char *path = NULL;
    while (count-- && (path = checkpoint_path(checkpoints, steps[count], error))) {
        if (checkpoint_verify(path, true, error)) break;
        log_warning("passing over a damaged checkpoint: %s", error->message);
        free(path);
        path = NULL;
    }
    free(steps);
    return path;
}

/* Renamed first, so that a kill on the way leaves nothing that looks like a checkpoint. */
static bool remove_checkpoint(const char *checkpoints, int64_t step, Error *error) {
    char name[CHECKPOINT_NAME], hidden[CHECKPOINT_NAME + 8];
    snprintf(hidden, sizeof hidden, ".%s.tmp", checkpoint_name(name, step));
    char *path = path_join(checkpoints, name, error);
    char *doomed = path ? path_join(checkpoints, hidden, error) : NULL;
    bool done = doomed &&
                (rename(path, doomed) == 0 || fail_errno(error, "cannot remove %s", path)) &&
                directory_remove(doomed, error);
    free(path);
    free(doomed);
    return done;
}

bool checkpoints_prune(const char *checkpoints, int64_t keep, Error *error) {
    int64_t *steps, whole = 0;
    size_t count;
    if (keep <= 0) return true;
    if (!checkpoints_list(checkpoints, &steps, &count, error)) return false;
    bool done = true;
    while (done && count--) {
        Error damage;
        if (whole == keep) {
            done = remove_checkpoint(checkpoints, steps[count], error);
            continue;
        }
        char *path = checkpoint_path(checkpoints, steps[count], error);
        done = path != NULL;
        if (done && checkpoint_verify(path, false, &damage)) whole++;
        free(path);
    }
    free(steps);
    return done;
}
