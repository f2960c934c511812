#include "cmd/checkpoint_path.h"

#include <stdlib.h>

#include "base/file.h"
#include "train/run_directory.h"

static bool holds(const char *directory, const char *name, bool *answer, Error *error) {
    char *path = path_join(directory, name, error);
    *answer = path && path_exists(path);
    free(path);
    return path != NULL;
}

char *checkpoint_path(const char *directory, Error *error) {
    bool is_model, is_run;
    if (!holds(directory, "config.json", &is_model, error) ||
        !holds(directory, "checkpoints", &is_run, error))
        return NULL;
    if (is_model) return copy_string(directory, error);
    if (!is_run) {
        fail(error,
             "%s is no checkpoint (it has no config.json) and no run (it has no checkpoints/)",
             directory);
        return NULL;
    }
    char *checkpoints = path_join(directory, "checkpoints", error);
    char *latest = checkpoints ? checkpoints_latest(checkpoints, error) : NULL;
    free(checkpoints);
    return latest;
}
