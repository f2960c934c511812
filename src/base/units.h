/* Numbers as people write them: "16G" bytes, "2.5B" tokens, "1h 05m". */
#ifndef HEARTH_BASE_UNITS_H
#define HEARTH_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes: a number with an optional K, M, G or T, powers of 1024 ("16G" = 16 GiB; "16GB" and "16GiB"
 * mean the same). Refuses negative, fractional bytes and overflow. */
bool parse_bytes(const char *text, int64_t *out, Error *error);

/* Counts (tokens, steps): a number with an optional K, M, B (or G) or T, powers of 1000; Ki, Mi and
 * Gi are powers of 1024. */
bool parse_count(const char *text, int64_t *out, Error *error);

/* A duration in seconds: "90", "90s", "15m", "2h". */
bool parse_duration(const char *text, double *out, Error *error);

/* These write into `out` and return it. */
char *format_bytes(char out[32], int64_t bytes);     /* "1.25 GiB" */
char *format_count(char out[32], double count);      /* "124.4M", "2.50B" */
char *format_duration(char out[32], double seconds); /* "42s", "3m 20s", "1h 05m", "3d 04h" */

#endif
