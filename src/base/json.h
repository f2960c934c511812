/* JSON through jansson, with errors that name the file and the key. */
#ifndef HEARTH_BASE_JSON_H
#define HEARTH_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

/* Reads a file of at most `limit` bytes whose root is an object. Release with json_decref(). */
json_t *json_read_file(const char *path, size_t limit, Error *error);

/* The same from memory; `name` stands for the file in messages. */
json_t *json_read_bytes(const char *name, const void *data, size_t size, Error *error);

/* Appends the text of the value, with jansson's flags. (json_dumps() overlooks some failures to
 * allocate and then returns text with parts missing.) */
bool json_to_text(Bytes *out, const json_t *value, size_t flags, Error *error);

/* Writes atomically, indented, keys in the order they were set, with a final newline. */
bool json_write_file(const char *path, const json_t *value, Error *error);

/* Members of an object. A missing key, another type or a value outside [minimum, maximum] is an
 * error that names the key. */
bool json_get_integer(const json_t *object, const char *key, int64_t minimum, int64_t maximum,
                      int64_t *out, Error *error);
bool json_get_number(const json_t *object, const char *key, double *out, Error *error);
bool json_get_bool(const json_t *object, const char *key, bool *out, Error *error);
/* NULL on error; the text lives as long as the object. */
const char *json_get_string(const json_t *object, const char *key, Error *error);

#endif
