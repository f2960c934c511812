#include "cmd/checkpoint_path.h"

#include <stdlib.h>

#include "base/file.h"
#include "cmd/options.h"
#include "train/run_directory.h"

static bool holds(const char *directory, const char *name) {
    Error error;
    char *path = path_join(directory, name, &error);
    bool held = path && path_exists(path);
    free(path);
    return held;
}

bool path_is_run(const char *directory) {
    return holds(directory, "checkpoints") && !holds(directory, "config.json");
}

const char *checkpoint_path(const char *directory, Error *error) {
    if (holds(directory, "config.json")) return text_keep(directory, error);
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
