#include "cmd/checkpoint_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cmd/options.h"
#include "train/run_directory.h"

static bool holds(const char *directory, const char *name) {
    char path[PATH_MAX]; /* a longer one cannot be opened */
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length >= 0 && length < PATH_MAX && path_exists(path);
}

bool path_is_model(const char *directory) {
    return holds(directory, "config.json");
}

bool path_is_run(const char *directory) {
    return holds(directory, "checkpoints") && !path_is_model(directory);
}

const char *checkpoint_path(const char *directory, Error *error) {
    if (path_is_model(directory)) return text_keep(directory, error);
    if (!path_is_run(directory)) {
        fail(error,
             "%s is no checkpoint (it has no config.json) and no run (it has no checkpoints/)",
             directory);
        return NULL;
    }
    char *checkpoints = path_join(directory, "checkpoints", error);
    char *latest = checkpoints ? checkpoints_latest(checkpoints, error) : NULL;
    const char *kept = latest ? text_keep(latest, error) : NULL;
    free(checkpoints);
    free(latest);
    return kept;
}
