/* JSON lines: a line is held whole, its string is handed out in pieces. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/format.h"
#include "data/json_line.h"
#include "data/stream.h"

enum { WINDOW_BYTES = 1 << 16 };

typedef struct LinesFile {
    Stream *stream;
    const char *field;
    Bytes line, text;
    int64_t line_number;
    size_t given; /* of text, in pieces so far */
    size_t used, filled;
    uint8_t window[WINDOW_BYTES];
} LinesFile;

static void close_lines(void *state) {
    LinesFile *file = state;
    stream_free(file->stream);
    bytes_free(&file->line);
    bytes_free(&file->text);
    free(file);
}

static void *open_lines(const char *path, const ReaderSettings *settings, Error *error) {
    LinesFile *file = allocate(1, sizeof *file, error);
    if (!file) return NULL;
    file->field = settings->field ? settings->field : "text";
    if ((file->stream = stream_open(path, error))) return file;
    close_lines(file);
    return NULL;
}

/* Reads up to the next line feed or the end; *more is false when there is no further line. */
static bool read_line(LinesFile *file, bool *more, Error *error) {
    file->line.size = 0;
    file->line_number++;
    *more = true;
    for (;;) {
        if (file->used == file->filled) {
            file->used = 0;
            if (!stream_read(file->stream, file->window, WINDOW_BYTES, &file->filled, error))
                return false;
            if (!file->filled) {
                *more = file->line.size != 0;
                return true;
            }
        }
        const uint8_t *start = file->window + file->used;
        size_t left = file->filled - file->used;
        const uint8_t *feed = memchr(start, '\n', left);
        size_t count = feed ? (size_t)(feed - start) : left;
        if (file->line.size + count > READER_LINE)
            return fail(error, "%s:%lld is longer than the %d bytes that a JSON line may have",
                        stream_name(file->stream), (long long)file->line_number, READER_LINE);
        if (!bytes_append(&file->line, start, count, error)) return false;
        file->used += count + (feed != NULL);
        if (feed) return true;
    }
}

static bool is_blank(const Bytes *line) {
    for (size_t i = 0; i < line->size; i++)
        if (!strchr(" \t\r", line->data[i]) || !line->data[i]) return false;
    return true;
}

/* The string of a line, or none for a blank line. */
static bool parse_line(LinesFile *file, Error *error) {
    const Bytes *line = &file->line;
    bool marked = file->line_number == 1 && line->size >= 3 &&
                  !memcmp(line->data, "\xEF\xBB\xBF", 3); /* by a byte order mark */
    size_t skipped = marked ? 3 : 0;
    file->text.size = 0;
    if (is_blank(line) || json_line_string(line->data + skipped, line->size - skipped, file->field,
                                           &file->text, error))
        return true;
    return fail_within(error, "%s:%lld", stream_name(file->stream), (long long)file->line_number);
}

static ReadResult next_lines(void *state, Piece *piece, Error *error) {
    LinesFile *file = state;
    bool begins = file->given == file->text.size;
    if (begins) {
        file->given = 0;
        do {
            bool more;
            if (!read_line(file, &more, error)) return READ_FAILED;
            if (!more) return READ_END;
            if (!parse_line(file, error)) return READ_FAILED;
        } while (!file->text.size);
    }
    const uint8_t *text = file->text.data + file->given;
    size_t size = piece_size(text, file->text.size - file->given);
    *piece = (Piece){.text = text, .size = size, .begins = begins};
    file->given += size;
    return READ_PIECE;
}

static uint64_t consumed_lines(const void *state) {
    return stream_consumed(((const LinesFile *)state)->stream);
}

const Format format_jsonl = {open_lines, close_lines, next_lines, consumed_lines};
