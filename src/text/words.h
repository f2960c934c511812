/* The named split patterns as code: several times faster than the regular expressions, which stay
 * their definition (the tests compare the two). */
#ifndef HEARTH_TEXT_WORDS_H
#define HEARTH_TEXT_WORDS_H

#include <stdint.h>

/* The end of the piece that begins at `at`. The text up to `end` is valid UTF-8 and not empty;
 * unicode_load() has been called. */
typedef const uint8_t *WordEnd(const uint8_t *at, const uint8_t *end);

WordEnd word_end_gpt2, word_end_gpt4, word_end_cl100k, word_end_nanochat, word_end_o200k;

#endif
