/* Text files: a window over the stream, from which pieces are cut. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/format.h"
#include "data/stream.h"

enum { SEPARATOR_BYTES = 256, WINDOW_BYTES = 2 * READER_PIECE + SEPARATOR_BYTES };

typedef struct TextFile {
    Stream *stream;
    uint8_t separator[SEPARATOR_BYTES];
    size_t separator_size; /* 0 = none */
    bool ended, begins;    /* the stream has ended; the next piece begins a document */
    size_t used, filled;   /* of the window */
    uint8_t window[WINDOW_BYTES];
} TextFile;

/* Decodes the backslash escapes of --split-on. */
static bool set_separator(TextFile *file, const char *text, Error *error) {
    static const char letters[] = "ntr0\\", meanings[] = "\n\t\r\0\\";
    for (; *text; text++) {
        if (file->separator_size == SEPARATOR_BYTES)
            return fail(error, "the separator to split on is longer than %d bytes",
                        SEPARATOR_BYTES);
        const char *letter = *text == '\\' && text[1] ? strchr(letters, text[1]) : NULL;
        file->separator[file->separator_size++] =
            (uint8_t)(letter ? meanings[letter - letters] : *text);
        text += letter != NULL;
    }
    return file->separator_size || fail(error, "the separator to split on is empty");
}

static void close_text(void *state) {
    TextFile *file = state;
    stream_free(file->stream);
    free(file);
}

static void *open_text(const char *path, const ReaderSettings *settings, Error *error) {
    TextFile *file = allocate(1, sizeof *file, error);
    if (!file) return NULL;
    file->begins = true;
    if ((!settings->split_on || set_separator(file, settings->split_on, error)) &&
        (file->stream = stream_open(path, error)))
        return file;
    close_text(file);
    return NULL;
}

static bool fill_window(TextFile *file, Error *error) {
    size_t count;
    memmove(file->window, file->window + file->used, file->filled - file->used);
    file->filled -= file->used;
    file->used = 0;
    while (!file->ended && file->filled < WINDOW_BYTES) {
        if (!stream_read(file->stream, file->window + file->filled, WINDOW_BYTES - file->filled,
                         &count, error))
            return false;
        file->filled += count;
        file->ended = count == 0;
    }
    return true;
}

static ReadResult next_text(void *state, Piece *piece, Error *error) {
    TextFile *file = state;
    /* A separator must be whole in the window wherever a piece may end. */
    if (!file->ended && file->filled - file->used < READER_PIECE + SEPARATOR_BYTES &&
        !fill_window(file, error))
        return READ_FAILED;
    const uint8_t *text = file->window + file->used;
    size_t left = file->filled - file->used;
    if (!left) return READ_END;
    size_t within = READER_PIECE + file->separator_size;
    if (within > left) within = left;
    const uint8_t *found =
        file->separator_size ? memmem(text, within, file->separator, file->separator_size) : NULL;
    *piece = (Piece){.text = text, .begins = file->begins};
    piece->size = found ? (size_t)(found - text) : piece_size(text, left);
    file->used += piece->size + (found ? file->separator_size : 0);
    file->begins = found != NULL || (file->begins && !piece->size);
    return READ_PIECE;
}

static uint64_t consumed_text(const void *state) {
    return stream_consumed(((const TextFile *)state)->stream);
}

const Format format_text = {open_text, close_text, next_text, consumed_text};

static bool is_space(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

size_t piece_size(const uint8_t *text, size_t size) {
    if (size <= READER_PIECE) return size;
    for (size_t i = READER_PIECE - 1; i > READER_PIECE / 2; i--)
        if (text[i] == ' ' && !is_space(text[i - 1]) && !is_space(text[i + 1])) return i;
    for (size_t i = READER_PIECE; i > READER_PIECE - 4; i--)
        if ((text[i] & 0xC0) != 0x80) return i; /* between two UTF-8 characters */
    return READER_PIECE;
}
