#include "data/json_line.h"

#include <string.h>

enum { DEPTH = 256 };

typedef struct Scanner {
    const uint8_t *at, *start, *end;
    Error *error;
} Scanner;

static bool wrong(const Scanner *scanner, const char *expected) {
    size_t column = (size_t)(scanner->at - scanner->start) + 1;
    if (scanner->at == scanner->end)
        return fail(scanner->error, "the line ends at column %zu where %s should be", column,
                    expected);
    return fail(scanner->error, "column %zu is not %s", column, expected);
}

static void skip_space(Scanner *scanner) {
    while (scanner->at < scanner->end && (*scanner->at == ' ' || *scanner->at == '\t' ||
                                          *scanner->at == '\r' || *scanner->at == '\n'))
        scanner->at++;
}

/* Skips space, then tells whether `byte` comes, and passes it if so. */
static bool accept(Scanner *scanner, uint8_t byte) {
    skip_space(scanner);
    if (scanner->at == scanner->end || *scanner->at != byte) return false;
    scanner->at++;
    return true;
}

/* Strings. Where out is NULL they are checked and passed over. */

static bool put(Bytes *out, const void *data, size_t size, Error *error) {
    return !out || bytes_append(out, data, size, error);
}

static bool put_utf8(Bytes *out, uint32_t code, Error *error) {
    uint8_t bytes[4];
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size; i-- > 1; code >>= 6) bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
    bytes[0] = (uint8_t)(lead[size] | code);
    return put(out, bytes, size, error);
}

/* Four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const uint8_t *at, const uint8_t *end) {
    int32_t value = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int digit = at[i] >= '0' && at[i] <= '9' ? at[i] - '0' : (at[i] | 32) - 'a' + 10;
        if (digit < 0 || digit > 15 || (digit > 9 && (at[i] | 32) < 'a')) return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* After "\u". */
static bool read_unicode(Scanner *scanner, Bytes *out) {
    int32_t code = hex4(scanner->at, scanner->end);
    if (code < 0) return wrong(scanner, "four hexadecimal digits");
    scanner->at += 4;
    if (code >= 0xD800 && code < 0xE000) {
        const uint8_t *next = scanner->at;
        int32_t low = -1;
        if (code < 0xDC00 && scanner->end - next >= 6 && next[0] == '\\' && next[1] == 'u')
            low = hex4(next + 2, scanner->end);
        if (low >= 0xDC00 && low < 0xE000) {
            scanner->at += 6;
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else {
            code = 0xFFFD;
        }
    }
    return put_utf8(out, (uint32_t)code, scanner->error);
}

/* After the backslash. */
static bool read_escape(Scanner *scanner, Bytes *out) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (scanner->at == scanner->end) return wrong(scanner, "an escape");
    if (*scanner->at == 'u') {
        scanner->at++;
        return read_unicode(scanner, out);
    }
    const char *letter = *scanner->at ? strchr(letters, *scanner->at) : NULL;
    if (!letter) return wrong(scanner, "an escape");
    scanner->at++;
    return put(out, meanings + (letter - letters), 1, scanner->error);
}

static bool read_string(Scanner *scanner, Bytes *out) {
    if (!accept(scanner, '"')) return wrong(scanner, "a string");
    for (;;) {
        const uint8_t *run = scanner->at;
        while (scanner->at < scanner->end && *scanner->at != '"' && *scanner->at != '\\' &&
               *scanner->at >= 0x20)
            scanner->at++;
        if (!put(out, run, (size_t)(scanner->at - run), scanner->error)) return false;
        if (scanner->at == scanner->end) return wrong(scanner, "the string's closing quote");
        uint8_t byte = *scanner->at;
        if (byte < 0x20) return wrong(scanner, "allowed in a string (a control character)");
        scanner->at++;
        if (byte == '"') return true;
        if (!read_escape(scanner, out)) return false;
    }
}

/* A number, true, false or null. */
static bool skip_word(Scanner *scanner) {
    static const char *const words[] = {"true", "false", "null"};
    const uint8_t *start = scanner->at;
    while (scanner->at < scanner->end && *scanner->at &&
           strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *scanner->at))
        scanner->at++;
    size_t size = (size_t)(scanner->at - start);
    bool number = size && (*start == '-' || (*start >= '0' && *start <= '9'));
    for (size_t i = 0; number && i < size; i++)
        number = strchr("+-.0123456789eE", start[i]) != NULL;
    bool known = number;
    for (int i = 0; i < 3; i++) known |= strlen(words[i]) == size && !memcmp(words[i], start, size);
    if (known) return true;
    scanner->at = start;
    return wrong(scanner, "a value");
}

/* Any value. Open brackets are kept in an array, so that depth costs no stack. */
static bool skip_value(Scanner *scanner) {
    char closing[DEPTH];
    int depth = 0;
    for (;;) {
        skip_space(scanner);
        uint8_t byte = scanner->at < scanner->end ? *scanner->at : 0;
        bool opened = byte == '{' || byte == '[';
        if (opened) {
            if (depth == DEPTH)
                return fail(scanner->error, "brackets are nested over %d deep", DEPTH);
            closing[depth++] = byte == '{' ? '}' : ']';
            scanner->at++;
        } else if (!(byte == '"' ? read_string(scanner, NULL) : skip_word(scanner))) {
            return false;
        }
        while (depth && accept(scanner, (uint8_t)closing[depth - 1])) opened = false, depth--;
        if (!depth) return true;
        if (!opened && !accept(scanner, ',')) return wrong(scanner, "',' or a closing bracket");
        if (closing[depth - 1] == ']') continue;
        if (!read_string(scanner, NULL)) return false;
        if (!accept(scanner, ':')) return wrong(scanner, "':'");
    }
}

/* The names met so far, for the message when none is the one wanted. */
typedef struct Names {
    char text[160];
    size_t used;
} Names;

static void note_name(Names *names, const Bytes *name) {
    if (names->used + name->size + 4 >= sizeof names->text) return;
    char *to = names->text + names->used;
    if (names->used) *to++ = ',';
    *to++ = ' ';
    for (size_t i = 0; i < name->size; i++)
        *to++ = name->data[i] < 0x20 || name->data[i] == 0x7F ? '?' : (char)name->data[i];
    *to = 0;
    names->used = (size_t)(to - names->text);
}

/* One `"name": value`; the value goes to out if the name is `field`. */
static bool read_member(Scanner *scanner, const char *field, Bytes *name, Names *names, Bytes *out,
                        bool *found) {
    name->size = 0;
    if (!read_string(scanner, name)) return false;
    if (!accept(scanner, ':')) return wrong(scanner, "':'");
    note_name(names, name);
    if (name->size != strlen(field) || memcmp(name->data, field, name->size))
        return skip_value(scanner);
    skip_space(scanner);
    if (scanner->at < scanner->end && *scanner->at != '"')
        return fail(scanner->error, "field \"%s\" is not a string", field);
    *found = true;
    out->size = 0;
    return read_string(scanner, out);
}

static bool read_object(Scanner *scanner, const char *field, Bytes *name, Bytes *out) {
    bool found = false;
    Names names = {.used = 0};
    if (!accept(scanner, '{')) return wrong(scanner, "'{'");
    if (!accept(scanner, '}')) {
        do {
            if (!read_member(scanner, field, name, &names, out, &found)) return false;
        } while (accept(scanner, ','));
        if (!accept(scanner, '}')) return wrong(scanner, "',' or '}'");
    }
    skip_space(scanner);
    if (scanner->at < scanner->end) return wrong(scanner, "the end of the line");
    if (found) return true;
    return fail(scanner->error, "there is no field \"%s\"; choose with --field from:%s", field,
                names.used ? names.text : " (none)");
}

bool json_line_string(const uint8_t *line, size_t size, const char *field, Bytes *out,
                      Error *error) {
    Scanner scanner = {line, line, line + size, error};
    Bytes name = {0};
    out->size = 0;
    bool done = read_object(&scanner, field, &name, out);
    bytes_free(&name);
    return done;
}
