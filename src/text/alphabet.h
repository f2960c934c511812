/* GPT-2's byte alphabet: each of the 256 bytes written as one printable character, so that any
 * token can stand in a JSON string. Printable Latin-1 bytes stand for themselves; the others, in
 * order, for U+0100, U+0101, ... */
#ifndef HEARTH_TEXT_ALPHABET_H
#define HEARTH_TEXT_ALPHABET_H

#include "base/memory.h"

/* Appends the characters of `size` bytes as UTF-8. */
bool alphabet_write(Bytes *out, const uint8_t *bytes, size_t size, Error *error);

/* Appends the bytes that a UTF-8 text in the alphabet stands for. False without a message, and
 * `out` as it was, when a character is not of the alphabet; `out` must have room for `size` bytes.
 */
bool alphabet_read(Bytes *out, const char *text, size_t size);

#endif
