/* dataset.json: what a dataset consists of. */
#ifndef HEARTH_DATA_MANIFEST_H
#define HEARTH_DATA_MANIFEST_H

#include "base/file.h"
#include "data/dataset.h"

typedef struct ManifestFile {
    char *name; /* inside the directory */
    char sha256[SHA256_TEXT];
    int64_t tokens, documents; /* of a shard; documents that begin in it */
} ManifestFile;

typedef struct ManifestSplit {
    int64_t tokens, documents;
    int64_t bytes;       /* of text; -1 = unknown */
    ManifestFile starts; /* where each document begins: uint64 token positions */
    ManifestFile *shards;
    size_t shard_count, shard_capacity;
} ManifestSplit;

typedef struct Manifest {
    char tokenizer_hash[SHA256_TEXT]; /* "" when there is no dataset.json */
    uint32_t vocab_size, separator;
    ManifestSplit splits[2]; /* by Split */
} Manifest;

enum { DATASET_VERSION = 1 };

/* "train", "val": how files and keys name a split. */
const char *split_name(Split split);

bool manifest_read(Manifest *manifest, const char *directory, Error *error);
bool manifest_write(const Manifest *manifest, const char *directory, Error *error);
void manifest_free(Manifest *manifest);

/* Appends a shard, its name copied. */
ManifestFile *manifest_add_shard(ManifestSplit *split, const char *name, Error *error);

/* SHA-256 over the shards' checksums, training first. */
bool manifest_fingerprint(const Manifest *manifest, char out[SHA256_TEXT], Error *error);

/* A dataset.json for a directory that has only shards: every shard is read through once for its
 * checksum, its largest token and its documents, which begin where the training split's first token
 * stands. *starts of each split are allocated for the caller. */
bool manifest_from_shards(Manifest *manifest, const char *directory, int64_t *starts[2],
                          Error *error);

#endif
