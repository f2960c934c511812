/* Bytes of a file or of standard input, decompressed on the way. */
#ifndef HEARTH_DATA_STREAM_H
#define HEARTH_DATA_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Stream Stream;

/* "-" is standard input. gzip and zstd are told by the first bytes; a name that ends in .gz or .zst
 * without them is an error, and so is Parquet, which is no text. */
Stream *stream_open(const char *path, Error *error);
void stream_free(Stream *stream);

/* Reads up to `size` bytes; *count is 0 only at the end. Compressed data that ends early is an error. */
bool stream_read(Stream *stream, void *data, size_t size, size_t *count, Error *error);

/* How messages name it: the path, or "standard input". */
const char *stream_name(const Stream *stream);
/* Bytes taken from the file so far, before decompression. */
uint64_t stream_consumed(const Stream *stream);

#endif
