/* A dataset on disk: token shards of each split, and dataset.json that describes them.
 *
 * DIRECTORY/dataset.json, train_000000.bin…, val_000000.bin…, train_documents.u64, val_documents.u64
 * (where each document begins: uint64 token positions), and a copy of the tokenizer.
 * Shards are llm.c's: 256 int32 of header (magic 20240520, version 1, count), then uint16 tokens; or
 * magic 20240801, version 7, then uint32 tokens when the vocabulary exceeds 65,536. A document starts
 * with the tokenizer's separator. */
#ifndef HEARTH_DATA_DATASET_H
#define HEARTH_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

typedef enum Split { SPLIT_TRAIN, SPLIT_VALIDATION } Split;

typedef struct Dataset Dataset;

/* Opens a directory made by `data build`, or one that holds only llm.c shards (*train*.bin, *val*.bin):
 * then there is no tokenizer hash, a document begins wherever the first token stands again, and all is
 * read through once. Magic, version and length of every shard are checked here. Tokens are checked
 * against the vocabulary here up to 64 M of them, beyond that where they are read, so that opening takes
 * no time. Errors name the shard and the remedy. */
Dataset *dataset_open(const char *directory, Error *error);
void dataset_free(Dataset *dataset);

int64_t dataset_tokens(const Dataset *dataset, Split split);
int64_t dataset_documents(const Dataset *dataset, Split split);
/* UTF-8 bytes of the text that the split's tokens stand for (separators are none); -1 if unknown. */
int64_t dataset_bytes(const Dataset *dataset, Split split);
/* The tokenizer's hash, or NULL when the directory has no dataset.json. */
const char *dataset_tokenizer_hash(const Dataset *dataset);
uint32_t dataset_vocab_size(const Dataset *dataset);
/* SHA-256 over the shards' checksums in order: changes when the data changes. */
const char *dataset_fingerprint(const Dataset *dataset);
const char *dataset_directory(const Dataset *dataset);

/* Where each document of the split begins, ascending; dataset_documents() of them. */
const int64_t *dataset_document_starts(const Dataset *dataset, Split split);

/* Bytes held for the documents' starts, for the memory table. */
size_t dataset_memory(const Dataset *dataset);

/* Copies `count` tokens from position `start` of the split, across shards, into out. A token that is
 * not below the vocabulary is an error that names its shard. May be called from many threads at once. */
bool dataset_read(const Dataset *dataset, Split split, int64_t start, int64_t count, uint32_t *out,
                  Error *error);

/* Checks every file against its checksum, and every token against the vocabulary. */
bool dataset_verify(const Dataset *dataset, Error *error);

#endif
