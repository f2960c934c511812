/* Allocation with checked sizes, and growable arrays. */
#ifndef HEARTH_BASE_MEMORY_H
#define HEARTH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Zeroed memory for count elements of size bytes; NULL with an error when count * size overflows or
 * memory is exhausted. Never NULL on success, even for zero bytes. Release with free(). */
void *allocate(size_t count, size_t size, Error *error);

/* Grows *array (of *capacity elements) so that it holds at least `needed`; growth is geometric. New
 * elements are not initialised. On failure *array is unchanged. Pass the address of any pointer:
 * `reserve(&ids, &capacity, count + 1, sizeof *ids, error)`. */
bool reserve(void *array_address, size_t *capacity, size_t needed, size_t size, Error *error);

/* A growable run of bytes. Zero-initialise; release with bytes_free(). */
typedef struct Bytes {
    uint8_t *data;
    size_t size, capacity;
} Bytes;

bool bytes_append(Bytes *bytes, const void *data, size_t size, Error *error);
bool bytes_format(Bytes *bytes, Error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void bytes_free(Bytes *bytes);

/* A copy of a string, or NULL with an error. */
char *copy_string(const char *text, Error *error);

#endif
