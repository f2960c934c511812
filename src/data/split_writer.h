/* Writes the shards of one split, and where its documents begin. */
#ifndef HEARTH_DATA_SPLIT_WRITER_H
#define HEARTH_DATA_SPLIT_WRITER_H

#include "data/manifest.h"

typedef struct SplitWriter SplitWriter;

/* Shards are cut every `shard_tokens` tokens, in the middle of a document too. */
SplitWriter *split_writer_open(const char *directory, Split split, int token_bytes,
                               int64_t shard_tokens, Error *error);
/* The next token begins a document. */
bool split_writer_begin(SplitWriter *writer, Error *error);
bool split_writer_write(SplitWriter *writer, const uint32_t *tokens, size_t count, Error *error);
/* Publishes the files, describes them in *entry (but for its bytes) and frees the writer, also on
 * failure. */
bool split_writer_finish(SplitWriter *writer, ManifestSplit *entry, Error *error);
/* NULL is allowed. */
void split_writer_discard(SplitWriter *writer);

#endif
