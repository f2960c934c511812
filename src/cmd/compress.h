/* How small general compressors make a text: the demo's yardstick for a language model. */
#ifndef HEARTH_CMD_COMPRESS_H
#define HEARTH_CMD_COMPRESS_H

#include <stddef.h>

#include "base/error.h"

/* Bytes that `gzip -9` and `xz -9` need for the text, file headers included; 0 with an error. */
size_t gzip_size(const void *text, size_t size, Error *error);
size_t xz_size(const void *text, size_t size, Error *error);

#endif
