/* Errors: one message that a user can act on.
 *
 * A function that can fail returns bool and takes `Error *error` last. On failure the message names
 * the file, the value and the remedy. Nothing below cmd/ prints an error or exits. */
#ifndef HEARTH_BASE_ERROR_H
#define HEARTH_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Error {
    char message[1024];
} Error;

/* Writes the message and returns false, so that callers can `return fail(error, ...)`. */
bool fail(Error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As fail(), with ": " and the text of errno appended. */
bool fail_errno(Error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As fail(), for memory that could not be had; `bytes` is what was asked for. */
bool fail_memory(Error *error, size_t bytes);

/* Puts "context: " before the message that is already there, and returns false. */
bool fail_within(Error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
