/* One token shard, in llm.c's format: 256 int32 of header (magic, version, token count), then tokens of
 * two or four bytes. Little-endian, as every machine hearth runs on. */
#ifndef HEARTH_DATA_SHARD_H
#define HEARTH_DATA_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { SHARD_HEADER_BYTES = 1024 };

/* The count is an int32 in the header. */
#define SHARD_TOKENS_MAX INT32_MAX

void shard_header(int32_t header[256], int token_bytes, int64_t tokens);

typedef struct Shard {
    char *path;
    int descriptor, token_bytes;
    int64_t tokens;
} Shard;

/* Opens a shard whose magic and version are known and whose size is what its header says. */
bool shard_open(Shard *shard, const char *path, Error *error);
void shard_close(Shard *shard);

/* Copies tokens start..start+count-1 into out; the caller keeps within shard->tokens. It reads rather
 * than maps: pages of a mapping count as the process's memory, and a file that shrinks under a mapping
 * kills the process where here it is an error. */
bool shard_read(const Shard *shard, int64_t start, int64_t count, uint32_t *out, Error *error);

#endif
