#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static char directory[256];
static pid_t owner;

static void remove_directory(void) {
    Error error;
    if (getpid() == owner) directory_remove(directory, &error);
}

const char *test_directory(void) {
    if (!*directory) {
        const char *base = getenv("TMPDIR");
        snprintf(directory, sizeof directory, "%s/hearth-test-XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(directory)) abort();
        owner = getpid();
        atexit(remove_directory);
    }
    return directory;
}

/* Strings that live until exit, chained so that a leak checker sees them in use. */
typedef struct Kept {
    struct Kept *before;
    char text[];
} Kept;

static const char *keep(const char *folder, const char *name) {
    static Kept *last;
    size_t size = strlen(folder) + strlen(name) + 2;
    Kept *kept = malloc(sizeof *kept + size);
    if (!kept) abort();
    snprintf(kept->text, size, "%s/%s", folder, name);
    kept->before = last;
    last = kept;
    return kept->text;
}

const char *test_path(const char *name) {
    return keep(test_directory(), name);
}

const char *shared_data(const char *name) {
    const char *root = getenv("HEARTH_SHARED_DATA");
    const char *path = keep(root ? root : HEARTH_SOURCE "/../shared/data", name);
    return path_exists(path) ? path : NULL;
}
