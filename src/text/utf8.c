#include "text/utf8.h"

#include <string.h>

/* As utf8_character(), of at least one byte. */
static inline size_t character_length(const uint8_t *text, size_t size) {
    uint8_t lead = text[0];
    if (lead < 0x80) return 1;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || size < length || (text[1] & 0xC0) != 0x80) return 0;
    if (length == 2) return 2;
    if ((text[2] & 0xC0) != 0x80) return 0;
    if (lead == 0xE0 && text[1] < 0xA0) return 0; /* overlong */
    if (lead == 0xED && text[1] > 0x9F) return 0; /* surrogate */
    if (length == 3) return 3;
    if ((text[3] & 0xC0) != 0x80) return 0;
    if (lead == 0xF0 && text[1] < 0x90) return 0; /* overlong */
    if (lead == 0xF4 && text[1] > 0x8F) return 0; /* above U+10FFFF */
    return 4;
}

size_t utf8_character(const uint8_t *text, size_t size) {
    return size ? character_length(text, size) : 0;
}

size_t utf8_valid_prefix(const uint8_t *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        uint64_t block;
        if (size - at >= sizeof block) { /* eight ASCII characters at once */
            memcpy(&block, text + at, sizeof block);
            if (!(block & 0x8080808080808080u)) {
                at += sizeof block;
                continue;
            }
        }
        size_t length = character_length(text + at, size - at);
        if (!length) break;
        at += length;
    }
    return at;
}
