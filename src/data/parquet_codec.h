/* How the pages of a Parquet file are compressed. */
#ifndef HEARTH_DATA_PARQUET_CODEC_H
#define HEARTH_DATA_PARQUET_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Whether this codec, by its number in the format, can be read; the error names it. */
bool parquet_codec_check(int codec, Error *error);

/* Decompresses to exactly out_size bytes, of a codec that passed the check. Sizes are below 2 GiB. */
bool parquet_decompress(int codec, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                        Error *error);

#endif
