/* Directories that hold llm.c's shards and no dataset.json. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/manifest.h"
#include "data/shard.h"

enum { CHUNK_TOKENS = 1 << 18 };

typedef struct Starts {
    int64_t *positions;
    size_t count, capacity;
} Starts;

/* Adds one chunk's documents and raises the vocabulary over its tokens. */
static bool scan_chunk(Manifest *manifest, Starts *starts, const uint32_t *tokens, int64_t count,
                       int64_t first, Error *error) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = tokens[i] > largest ? tokens[i] : largest;
        if (tokens[i] != manifest->separator && first + i != 0) continue;
        if (!reserve(&starts->positions, &starts->capacity, starts->count + 1,
                     sizeof *starts->positions, error))
            return false;
        starts->positions[starts->count++] = first + i;
    }
    if (largest >= INT32_MAX) return fail(error, "token %u is not one of any tokenizer", largest);
    if (count && largest >= manifest->vocab_size) manifest->vocab_size = largest + 1;
    return true;
}

static bool scan_shard(Manifest *manifest, ManifestSplit *split, Starts *starts, const char *path,
                       uint32_t *chunk, Error *error) {
    ManifestFile *entry = manifest_add_shard(split, strrchr(path, '/') + 1, error);
    Shard shard;
    if (!entry || !shard_open(&shard, path, error)) return false;
    size_t documents_before = starts->count;
    bool done = sha256_file(path, entry->sha256, error);
    for (int64_t start = 0; done && start < shard.tokens; start += CHUNK_TOKENS) {
        int64_t count = shard.tokens - start;
        if (count > CHUNK_TOKENS) count = CHUNK_TOKENS;
        done = shard_read(&shard, start, count, chunk, error);
        if (done && manifest->vocab_size == 0) manifest->separator = chunk[0];
        if (done && !scan_chunk(manifest, starts, chunk, count, split->tokens + start, error))
            done = fail_within(error, "%s", path);
    }
    entry->tokens = shard.tokens;
    entry->documents = (int64_t)(starts->count - documents_before);
    split->tokens += shard.tokens;
    split->documents = (int64_t)starts->count;
    shard_close(&shard);
    return done;
}

static bool find_shards(const char *directory, Split split, glob_t *found, Error *error) {
    char pattern[16];
    snprintf(pattern, sizeof pattern, "*%s*.bin", split_name(split));
    char *path = path_join(directory, pattern, error);
    if (!path) return false;
    int status = glob(path, 0, NULL, found);
    free(path);
    return status == 0 || status == GLOB_NOMATCH || fail(error, "cannot list %s", directory);
}

static bool scan_split(Manifest *manifest, const char *directory, Split which, uint32_t *chunk,
                       Starts *starts, Error *error) {
    ManifestSplit *split = &manifest->splits[which];
    split->bytes = -1;
    glob_t found = {0};
    bool done = find_shards(directory, which, &found, error);
    for (size_t i = 0; done && i < found.gl_pathc; i++)
        done = scan_shard(manifest, split, starts, found.gl_pathv[i], chunk, error);
    globfree(&found);
    return done;
}

bool manifest_from_shards(Manifest *manifest, const char *directory, int64_t *starts[2],
                          Error *error) {
    *manifest = (Manifest){0};
    Starts found[2] = {0};
    uint32_t *chunk = allocate(CHUNK_TOKENS, sizeof *chunk, error);
    double started = seconds_now();
    bool done = chunk && scan_split(manifest, directory, SPLIT_TRAIN, chunk, &found[0], error) &&
                scan_split(manifest, directory, SPLIT_VALIDATION, chunk, &found[1], error);
    free(chunk);
    if (done && !manifest->vocab_size)
        done = fail(error,
                    "%s has neither dataset.json nor token shards (*train*.bin, *val*.bin); "
                    "make a dataset with 'hearth data build'",
                    directory);
    if (done && seconds_now() - started > 1)
        log_line("%s has no dataset.json: read all its shards in %.0f s", directory,
                 seconds_now() - started);
    for (int s = 0; s < 2; s++) {
        if (!done) free(found[s].positions);
        starts[s] = done ? found[s].positions : NULL;
    }
    if (!done) manifest_free(manifest);
    return done;
}
