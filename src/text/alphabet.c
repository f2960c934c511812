#include "text/alphabet.h"

enum { FIRST_MOVED = 0x100, MOVED = 68, CODES = FIRST_MOVED + MOVED };

static bool stands_for_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

/* The moved bytes in order: 0-32, 127-160, 173. */
static unsigned moved_byte(unsigned index) {
    return index < 33 ? index : index < 67 ? index - 33 + 127 : 173;
}

static unsigned code_of_byte(unsigned byte) {
    if (stands_for_itself(byte)) return byte;
    return FIRST_MOVED + (byte < 33 ? byte : byte < 161 ? byte - 127 + 33 : 67);
}

bool alphabet_write(Bytes *out, const uint8_t *bytes, size_t size, Error *error) {
    if (!reserve(&out->data, &out->capacity, out->size + 2 * size, 1, error)) return false;
    for (size_t i = 0; i < size; i++) {
        unsigned code = code_of_byte(bytes[i]);
        if (code >= 0x80) out->data[out->size++] = (uint8_t)(0xC0 | code >> 6);
        out->data[out->size++] = (uint8_t)(code < 0x80 ? code : 0x80 | (code & 0x3F));
    }
    return true;
}

bool alphabet_read(Bytes *out, const char *text, size_t size) {
    size_t before = out->size;
    for (size_t i = 0; i < size; i++) {
        unsigned code = (uint8_t)text[i];
        if (code >= 0x80) { /* every code is below U+0800: two bytes */
            unsigned next = i + 1 < size ? (uint8_t)text[++i] : 0;
            code = (code & 0xE0) == 0xC0 && (next & 0xC0) == 0x80
                       ? (code & 0x1F) << 6 | (next & 0x3F)
                       : CODES;
        }
        if (code >= CODES || (code < FIRST_MOVED && !stands_for_itself(code))) {
            out->size = before;
            return false;
        }
        if (code >= FIRST_MOVED) code = moved_byte(code - FIRST_MOVED);
        out->data[out->size++] = (uint8_t)code;
    }
    return true;
}
