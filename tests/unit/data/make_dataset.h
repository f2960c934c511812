/* Small datasets made by hand, for the tests of this room. */
#ifndef HEARTH_TESTS_MAKE_DATASET_H
#define HEARTH_TESTS_MAKE_DATASET_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/manifest.h"
#include "data/shard.h"
#include "support.h"

typedef struct Corpus {
    const char *directory;
    uint32_t vocab_size; /* ids 1.. are text, 0 is the separator */
    int token_bytes;
    const int64_t *lengths; /* of the documents, separator included */
    int64_t documents;
    int64_t shard_tokens;
} Corpus;

static inline void write_file(const char *directory, const char *name, const void *data,
                              size_t size) {
    Error error;
    char *path = path_join(directory, name, &error);
    assert_done(file_write(path, data, size, &error), error);
    free(path);
}

/* Every file of a dataset except dataset.json, which is described in *split. Token i of the split that
 * begins no document is 1 + i % (vocab - 1), so that a place in the split can be recognised. */
static inline void make_split(const char *directory, const Corpus *corpus, Split which,
                              ManifestSplit *split) {
    Error error;
    char name[32];
    int64_t *starts = calloc((size_t)corpus->documents + 1, sizeof *starts);
    for (int64_t d = 0; d < corpus->documents; d++) starts[d + 1] = starts[d] + corpus->lengths[d];
    split->tokens = starts[corpus->documents];
    split->documents = corpus->documents;
    split->bytes = split->tokens - split->documents;
    snprintf(name, sizeof name, "%s_documents.u64", split_name(which));
    split->starts.name = copy_string(name, &error);
    size_t size = (size_t)split->documents * sizeof *starts;
    write_file(directory, name, starts, size);
    sha256_bytes(starts, size, split->starts.sha256);
    int64_t document = 0;
    for (int64_t first = 0; first < split->tokens; first += corpus->shard_tokens) {
        int64_t count = split->tokens - first;
        if (count > corpus->shard_tokens) count = corpus->shard_tokens;
        size = (size_t)(SHARD_HEADER_BYTES + count * corpus->token_bytes);
        uint8_t *bytes = calloc(size, 1);
        int32_t header[256];
        shard_header(header, corpus->token_bytes, count);
        memcpy(bytes, header, sizeof header);
        snprintf(name, sizeof name, "%s_%06zu.bin", split_name(which), split->shard_count);
        ManifestFile *shard = manifest_add_shard(split, name, &error);
        for (int64_t i = 0; i < count; i++) {
            bool begins = starts[document] == first + i && document < corpus->documents;
            uint32_t token = begins ? 0 : 1 + (uint32_t)((first + i) % (corpus->vocab_size - 1));
            memcpy(bytes + SHARD_HEADER_BYTES + i * corpus->token_bytes, &token,
                   (size_t)corpus->token_bytes);
            document += begins, shard->documents += begins;
        }
        write_file(directory, name, bytes, size);
        sha256_bytes(bytes, size, shard->sha256);
        shard->tokens = count;
        free(bytes);
    }
    free(starts);
}

static inline void make_dataset(const Corpus *train, const Corpus *validation) {
    Error error;
    Manifest manifest = {.vocab_size = train->vocab_size};
    memset(manifest.tokenizer_hash, 'a', SHA256_TEXT - 1);
    assert_done(directory_create(train->directory, &error), error);
    make_split(train->directory, train, SPLIT_TRAIN, &manifest.splits[SPLIT_TRAIN]);
    make_split(train->directory, validation, SPLIT_VALIDATION, &manifest.splits[SPLIT_VALIDATION]);
    assert_done(manifest_write(&manifest, train->directory, &error), error);
    manifest_free(&manifest);
}

/* `count` lengths between 1 and `longest`, most of them short. */
static inline int64_t *make_lengths(int64_t count, uint64_t longest, uint64_t seed) {
    int64_t *lengths = calloc((size_t)count, sizeof *lengths);
    for (int64_t i = 0; i < count; i++) {
        uint64_t most = 1 + random_below(seed, 1, (uint64_t)i, longest);
        lengths[i] = 1 + (int64_t)random_below(seed, 2, (uint64_t)i, most);
    }
    return lengths;
}

#endif
