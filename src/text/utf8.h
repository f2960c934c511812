/* UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef HEARTH_TEXT_UTF8_H
#define HEARTH_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the character that `text` begins with (1-4), or 0 when it begins with none. */
size_t utf8_character(const uint8_t *text, size_t size);

/* How many bytes from the start are whole valid characters. */
size_t utf8_valid_prefix(const uint8_t *text, size_t size);

#endif
