#include "data/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

static bool has_entries(const char *path) {
    DIR *directory = opendir(path);
    if (!directory) return false;
    int count = 0;
    while (readdir(directory)) count++;
    closedir(directory);
    return count > 2; /* "." and ".." */
}

static bool check_target(Output *output, bool overwrite, Error *error) {
    if (!path_exists(output->target)) return true;
    if (!path_is_directory(output->target))
        return fail(error, "%s exists and is not a directory; choose another --out",
                    output->target);
    if (!has_entries(output->target)) return true;
    if (!overwrite)
        return fail(error,
                    "%s is not empty; choose another --out, or give --overwrite to replace the "
                    "dataset there",
                    output->target);
    char *path = path_join(output->target, "dataset.json", error);
    if (!path) return false;
    output->replace = path_exists(path);
    free(path);
    return output->replace || fail(error,
                                   "%s holds something else than a dataset (it has no "
                                   "dataset.json), so it is not overwritten; choose another --out",
                                   output->target);
}

static bool lock_directory(Output *output, Error *error) {
    output->lock = open(output->working, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->lock < 0) return fail_errno(error, "cannot open directory %s", output->working);
    if (flock(output->lock, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return true; /* a file system without locks */
    close(output->lock);
    output->lock = -1;
    return fail(error, "another build is writing %s; wait for it, or choose another --out",
                output->target);
}

/* What a killed build left is cleared away, once its lock shows that it is dead. */
static bool create_working(Output *output, Error *error) {
    if (path_exists(output->working)) {
        if (!lock_directory(output, error)) return false;
        bool removed = directory_remove(output->working, error);
        close(output->lock);
        output->lock = -1;
        if (!removed) return false;
    }
    if (!directory_create(output->working, error)) return false;
    if (lock_directory(output, error)) return true;
    rmdir(output->working);
    return false;
}

bool output_open(Output *output, const char *target, bool overwrite, Error *error) {
    *output = (Output){.lock = -1};
    size_t length = strlen(target);
    while (length > 1 && target[length - 1] == '/') length--;
    output->target = copy_string(target, error);
    output->working = output->target ? allocate(length + sizeof ".building", 1, error) : NULL;
    bool done = output->working != NULL;
    if (done) {
        output->target[length] = 0;
        sprintf(output->working, "%s.building", output->target);
        done = length ? check_target(output, overwrite, error) : fail(error, "--out is empty");
    }
    if (done && create_working(output, error)) return true;
    output_close(output);
    return false;
}

static bool rename_working(Output *output, Error *error) {
    /* An exchange leaves no moment without a dataset; the old one is then under the working name. */
    int status = output->replace ? renameat2(AT_FDCWD, output->working, AT_FDCWD, output->target,
                                             RENAME_EXCHANGE)
                                 : rename(output->working, output->target);
    if (status == 0) return true;
    if (output->replace && errno == EINVAL)
        return fail(error,
                    "the file system of %s cannot replace a directory in one step; remove it "
                    "first",
                    output->target);
    return fail_errno(error, "cannot rename %s to %s", output->working, output->target);
}

bool output_publish(Output *output, Error *error) {
    char *parent = copy_string(output->target, error);
    if (!parent) return false;
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = 0;
    bool done = rename_working(output, error) && directory_sync(slash ? parent : ".", error);
    free(parent);
    return done;
}

void output_close(Output *output) {
    Error ignored;
    if (output->lock >= 0) {
        directory_remove(output->working, &ignored);
        close(output->lock);
    }
    free(output->target);
    free(output->working);
    *output = (Output){.lock = -1};
}
