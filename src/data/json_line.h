/* One string out of a line that holds a JSON object. */
#ifndef HEARTH_DATA_JSON_LINE_H
#define HEARTH_DATA_JSON_LINE_H

#include "base/memory.h"

/* Replaces the content of *out with the string `field` of the object, escapes decoded; of several, the
 * last. A surrogate without its pair becomes U+FFFD. Bytes that are not UTF-8 are kept. The rest of the
 * line is checked for being JSON: brackets, commas, strings and words; numbers only by their letters. */
bool json_line_string(const uint8_t *line, size_t size, const char *field, Bytes *out,
                      Error *error);

#endif
