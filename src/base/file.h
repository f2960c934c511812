/* Files: read whole, map, write atomically. */
#ifndef HEARTH_BASE_FILE_H
#define HEARTH_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

enum { SHA256_TEXT = 65 }; /* 64 hexadecimal digits and a NUL */

/* Reads a whole file of at most `limit` bytes; a NUL follows the data (not counted in size). */
bool file_read(const char *path, size_t limit, Bytes *out, Error *error);

/* A read-only mapping of a whole file. An empty file maps to data = NULL, size = 0. */
typedef struct FileMap {
    const uint8_t *data;
    size_t size;
} FileMap;
bool file_map(FileMap *map, const char *path, Error *error);
void file_unmap(FileMap *map);
/* Gives back the memory of `size` bytes at `data` within a mapping: they are read again if used again. */
void file_map_release(const void *data, size_t size);

/* Writes a file so that a reader sees all of it or none: to `path.tmp`, fsync, rename, fsync of the
 * directory. The SHA-256 of what was written is kept on the way. */
typedef struct FileWriter FileWriter;
FileWriter *file_writer_open(const char *path, Error *error);
bool file_writer_write(FileWriter *writer, const void *data, size_t size, Error *error);
/* Overwrites bytes already written (a header filled in at the end). The digest is then recomputed at
 * commit by reading the file back. */
bool file_writer_overwrite(FileWriter *writer, uint64_t offset, const void *data, size_t size,
                           Error *error);
/* Publishes the file and frees the writer, also on failure; sha256 may be NULL. */
bool file_writer_commit(FileWriter *writer, char sha256[SHA256_TEXT], Error *error);
/* Removes the temporary file and frees the writer; NULL is allowed. */
void file_writer_discard(FileWriter *writer);

/* The whole of a small file in one call. */
bool file_write(const char *path, const void *data, size_t size, Error *error);

/* SHA-256 as lower-case hexadecimal. */
void sha256_bytes(const void *data, size_t size, char out[SHA256_TEXT]);
bool sha256_file(const char *path, char out[SHA256_TEXT], Error *error);

bool path_exists(const char *path);
bool path_is_directory(const char *path);
/* "directory/name" in a new string, or NULL with an error. */
char *path_join(const char *directory, const char *name, Error *error);
/* Creates a directory and its parents; success when it exists already. */
bool directory_create(const char *path, Error *error);
/* Makes renames inside the directory durable. */
bool directory_sync(const char *path, Error *error);
/* Removes a directory and everything in it; success when it is not there. */
bool directory_remove(const char *path, Error *error);

#endif
