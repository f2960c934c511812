#include "data/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/manifest.h"
#include "data/shard.h"

typedef struct SplitFiles {
    Shard *shards;
    int64_t *first;  /* [shards + 1]: the split's position where each shard begins */
    int64_t *starts; /* [documents] */
    size_t count;    /* of shards that are open */
} SplitFiles;

struct Dataset {
    char *directory;
    Manifest manifest;
    char fingerprint[SHA256_TEXT];
    SplitFiles splits[2];
};

void dataset_free(Dataset *dataset) {
    if (!dataset) return;
    for (int s = 0; s < 2; s++) {
        SplitFiles *files = &dataset->splits[s];
        for (size_t i = 0; i < files->count; i++) shard_close(&files->shards[i]);
        free(files->shards);
        free(files->first);
        free(files->starts);
    }
    manifest_free(&dataset->manifest);
    free(dataset->directory);
    free(dataset);
}

static bool open_shard(Dataset *dataset, SplitFiles *files, const ManifestFile *entry,
                       Error *error) {
    char *path = path_join(dataset->directory, entry->name, error);
    Shard *shard = &files->shards[files->count];
    bool done = path && shard_open(shard, path, error);
    free(path);
    if (!done) return false;
    files->count++;
    files->first[files->count] = files->first[files->count - 1] + shard->tokens;
    if (shard->tokens != entry->tokens)
        return fail(error,
                    "%s holds %lld tokens but dataset.json says %lld; one of them is from "
                    "another dataset: build it again",
                    shard->path, (long long)shard->tokens, (long long)entry->tokens);
    return true;
}

static bool open_shards(Dataset *dataset, Split split, Error *error) {
    const ManifestSplit *entry = &dataset->manifest.splits[split];
    SplitFiles *files = &dataset->splits[split];
    files->shards = allocate(entry->shard_count, sizeof *files->shards, error);
    files->first = allocate(entry->shard_count + 1, sizeof *files->first, error);
    bool done = files->shards && files->first;
    for (size_t i = 0; done && i < entry->shard_count; i++)
        done = open_shard(dataset, files, &entry->shards[i], error);
    return done;
}

/* Positions must begin at 0 and ascend below the split's end: the loader relies on it. */
static bool check_starts(const ManifestSplit *entry, const int64_t *starts, Error *error) {
    for (int64_t i = 0; i < entry->documents; i++)
        if (starts[i] >= entry->tokens || (i ? starts[i] <= starts[i - 1] : starts[i] != 0))
            return fail(error,
                        "document %lld begins at token %lld, which cannot be; build the dataset "
                        "again",
                        (long long)i, (long long)starts[i]);
    return true;
}

static bool read_starts(Dataset *dataset, Split split, Error *error) {
    const ManifestSplit *entry = &dataset->manifest.splits[split];
    int64_t *starts = NULL;
    FileMap map = {0};
    char *path = path_join(dataset->directory, entry->starts.name, error);
    bool done = path && file_map(&map, path, error);
    if (done && map.size != (size_t)entry->documents * sizeof *starts)
        done = fail(error,
                    "%s has %zu bytes but dataset.json counts %lld documents of 8 bytes each; "
                    "build the dataset again",
                    path, map.size, (long long)entry->documents);
    if (done) done = (starts = allocate((size_t)entry->documents, sizeof *starts, error)) != NULL;
    if (done && map.size) memcpy(starts, map.data, map.size);
    if (done && !check_starts(entry, starts, error)) done = fail_within(error, "%s", path);
    file_unmap(&map);
    free(path);
    dataset->splits[split].starts = starts;
    return done;
}

static bool open_described(Dataset *dataset, Error *error) {
    return manifest_read(&dataset->manifest, dataset->directory, error) &&
           read_starts(dataset, SPLIT_TRAIN, error) &&
           read_starts(dataset, SPLIT_VALIDATION, error);
}

static bool open_bare(Dataset *dataset, Error *error) {
    int64_t *starts[2];
    bool done = manifest_from_shards(&dataset->manifest, dataset->directory, starts, error);
    for (int s = 0; s < 2; s++) dataset->splits[s].starts = starts[s];
    return done;
}

static bool open_files(Dataset *dataset, Error *error) {
    if (!path_is_directory(dataset->directory))
        return fail(error, "%s is not a directory; make a dataset with 'hearth data build'",
                    dataset->directory);
    char *path = path_join(dataset->directory, "dataset.json", error);
    if (!path) return false;
    bool done = path_exists(path) ? open_described(dataset, error) : open_bare(dataset, error);
    free(path);
    return done && open_shards(dataset, SPLIT_TRAIN, error) &&
           open_shards(dataset, SPLIT_VALIDATION, error) &&
           manifest_fingerprint(&dataset->manifest, dataset->fingerprint, error);
}

/* Reads every token of the split, which checks it. */
static bool verify_tokens(const Dataset *dataset, Split split, Error *error) {
    enum { CHUNK = 1 << 18 };
    uint32_t *tokens = allocate(CHUNK, sizeof *tokens, error);
    bool done = tokens != NULL;
    int64_t total = dataset_tokens(dataset, split);
    for (int64_t start = 0; done && start < total; start += CHUNK) {
        int64_t count = total - start < CHUNK ? total - start : CHUNK;
        done = dataset_read(dataset, split, start, count, tokens, error);
    }
    free(tokens);
    return done;
}

/* A damaged token is best found before training. Reading all takes no time up to this many; beyond, each
 * is checked when it is read. */
static bool check_if_small(const Dataset *dataset, Error *error) {
    const int64_t small = 64 << 20;
    int64_t total =
        dataset_tokens(dataset, SPLIT_TRAIN) + dataset_tokens(dataset, SPLIT_VALIDATION);
    return total > small || (verify_tokens(dataset, SPLIT_TRAIN, error) &&
                             verify_tokens(dataset, SPLIT_VALIDATION, error));
}

Dataset *dataset_open(const char *directory, Error *error) {
    Dataset *dataset = allocate(1, sizeof *dataset, error);
    if (!dataset) return NULL;
    dataset->directory = copy_string(directory, error);
    if (dataset->directory && open_files(dataset, error) && check_if_small(dataset, error))
        return dataset;
    dataset_free(dataset);
    return NULL;
}

int64_t dataset_tokens(const Dataset *dataset, Split split) {
    return dataset->manifest.splits[split].tokens;
}

int64_t dataset_documents(const Dataset *dataset, Split split) {
    return dataset->manifest.splits[split].documents;
}

int64_t dataset_bytes(const Dataset *dataset, Split split) {
    return dataset->manifest.splits[split].bytes;
}

const char *dataset_tokenizer_hash(const Dataset *dataset) {
    return *dataset->manifest.tokenizer_hash ? dataset->manifest.tokenizer_hash : NULL;
}

uint32_t dataset_vocab_size(const Dataset *dataset) {
    return dataset->manifest.vocab_size;
}

const char *dataset_fingerprint(const Dataset *dataset) {
    return dataset->fingerprint;
}

const char *dataset_directory(const Dataset *dataset) {
    return dataset->directory;
}

const int64_t *dataset_document_starts(const Dataset *dataset, Split split) {
    return dataset->splits[split].starts;
}

size_t dataset_memory(const Dataset *dataset) {
    int64_t documents =
        dataset_documents(dataset, SPLIT_TRAIN) + dataset_documents(dataset, SPLIT_VALIDATION);
    return (size_t)documents * sizeof(int64_t);
}

/* The last shard that begins at or before the position. */
static size_t find_shard(const SplitFiles *files, int64_t position) {
    size_t low = 0, high = files->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (files->first[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool check_tokens(const Dataset *dataset, const Shard *shard, int64_t start, int64_t count,
                         const uint32_t *tokens, Error *error) {
    uint32_t vocab = dataset->manifest.vocab_size, largest = 0;
    for (int64_t i = 0; i < count; i++) largest = tokens[i] > largest ? tokens[i] : largest;
    if (largest < vocab) return true;
    int64_t i = 0;
    while (tokens[i] < vocab) i++;
    return fail(error,
                "%s: token %u at position %lld is not below the vocabulary of %u; the shard is "
                "damaged or from another tokenizer: copy or build it again",
                shard->path, tokens[i], (long long)(start + i), vocab);
}

bool dataset_read(const Dataset *dataset, Split split, int64_t start, int64_t count, uint32_t *out,
                  Error *error) {
    const SplitFiles *files = &dataset->splits[split];
    if (start < 0 || count < 0 || count > dataset_tokens(dataset, split) - start)
        return fail(error, "tokens %lld to %lld of %s: the %s split has %lld", (long long)start,
                    (long long)start + count, dataset->directory, split_name(split),
                    (long long)dataset_tokens(dataset, split));
    for (size_t i = find_shard(files, start); count; i++) {
        int64_t inside = start - files->first[i], here = files->shards[i].tokens - inside;
        if (here > count) here = count;
        if (!shard_read(&files->shards[i], inside, here, out, error) ||
            !check_tokens(dataset, &files->shards[i], inside, here, out, error))
            return false;
        start += here;
        out += here;
        count -= here;
    }
    return true;
}

static bool verify_file(const Dataset *dataset, const ManifestFile *file, Error *error) {
    char found[SHA256_TEXT];
    char *path = path_join(dataset->directory, file->name, error);
    bool done = path && sha256_file(path, found, error);
    if (done && strcmp(found, file->sha256))
        done = fail(error,
                    "%s has changed since it was built: its SHA-256 is %.12s…, not %.12s…; copy "
                    "or build it again",
                    path, found, file->sha256);
    free(path);
    return done;
}

bool dataset_verify(const Dataset *dataset, Error *error) {
    for (int s = 0; s < 2; s++) {
        const ManifestSplit *entry = &dataset->manifest.splits[s];
        if (entry->starts.name && !verify_file(dataset, &entry->starts, error)) return false;
        for (size_t i = 0; i < entry->shard_count; i++)
            if (!verify_file(dataset, &entry->shards[i], error)) return false;
        if (!verify_tokens(dataset, (Split)s, error)) return false;
    }
    return true;
}
