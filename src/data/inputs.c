#include "data/inputs.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

typedef bool Wanted(const char *name);

static bool add_file(Inputs *inputs, const char *path, const struct stat *status, Error *error) {
    if (!reserve(&inputs->paths, &inputs->capacity, inputs->count + 1, sizeof *inputs->paths,
                 error) ||
        !(inputs->paths[inputs->count] = copy_string(path, error)))
        return false;
    inputs->count++;
    if (status && S_ISREG(status->st_mode))
        inputs->bytes += (uint64_t)status->st_size;
    else
        inputs->piped = true;
    return true;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* One entry of a walk through a directory. Hidden ones are passed over. */
static bool visit(Inputs *inputs, FTS *walk, FTSENT *entry, Wanted *wanted, Error *error) {
    switch (entry->fts_info) {
    case FTS_D:
        if (entry->fts_level > 0 && entry->fts_name[0] == '.') fts_set(walk, entry, FTS_SKIP);
        return true;
    case FTS_F:
        if (entry->fts_name[0] == '.' || !wanted(entry->fts_name)) return true;
        return add_file(inputs, entry->fts_path, entry->fts_statp, error);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = entry->fts_errno;
        return fail_errno(error, "cannot read %s", entry->fts_path);
    default:
        return true;
    }
}

static bool add_directory(Inputs *inputs, const char *path, Wanted *wanted, const char *wanted_text,
                          Error *error) {
    size_t before = inputs->count;
    char *name = copy_string(path, error);
    if (!name) return false;
    FTS *walk = fts_open((char *[]){name, NULL}, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    bool done = walk || fail_errno(error, "cannot read directory %s", path);
    while (done) {
        errno = 0;
        FTSENT *entry = fts_read(walk);
        if (!entry && errno) done = fail_errno(error, "cannot read directory %s", path);
        if (!entry) break;
        done = visit(inputs, walk, entry, wanted, error);
    }
    if (walk) fts_close(walk);
    free(name);
    if (done && inputs->count == before)
        return fail(error, "directory %s holds no %s file", path, wanted_text);
    return done;
}

static bool add_path(Inputs *inputs, const char *path, Wanted *wanted, const char *wanted_text,
                     Error *error) {
    struct stat status;
    if (stat(path, &status) != 0) return fail_errno(error, "cannot read %s", path);
    if (S_ISDIR(status.st_mode)) return add_directory(inputs, path, wanted, wanted_text, error);
    return add_file(inputs, path, &status, error);
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add_pattern(Inputs *inputs, const char *pattern, Wanted *wanted,
                        const char *wanted_text, Error *error) {
    glob_t found = {0};
    int status = glob(pattern, 0, NULL, &found);
    bool done = status == 0;
    if (status == GLOB_NOMATCH)
        fail(error, "no file matches '%s'", pattern);
    else if (!done)
        fail(error, "cannot expand '%s'", pattern);
    /* glob() sorts by the locale; a corpus is in byte order everywhere */
    if (done) qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_paths);
    for (size_t i = 0; done && i < found.gl_pathc; i++)
        done = add_path(inputs, found.gl_pathv[i], wanted, wanted_text, error);
    globfree(&found);
    return done;
}

bool inputs_find(Inputs *inputs, const char *const *names, int count, Wanted *wanted,
                 const char *wanted_text, Error *error) {
    *inputs = (Inputs){0};
    bool done = count > 0 || fail(error, "no input is given; name files, directories or '-'");
    for (int i = 0; done && i < count; i++) {
        struct stat status;
        if (!strcmp(names[i], "-"))
            done = add_file(inputs, "-", NULL, error);
        else if (stat(names[i], &status) != 0 && strpbrk(names[i], "*?["))
            done = add_pattern(inputs, names[i], wanted, wanted_text, error);
        else
            done = add_path(inputs, names[i], wanted, wanted_text, error);
    }
    if (inputs->piped) inputs->bytes = 0;
    if (!done) inputs_free(inputs);
    return done;
}

void inputs_free(Inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) free(inputs->paths[i]);
    free(inputs->paths);
    *inputs = (Inputs){0};
}
