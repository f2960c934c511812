#include "data/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/format.h"
#include "data/inputs.h"

static const struct {
    const char *suffix; /* after removal of .gz and .zst */
    const Format *format;
} formats[] = {{".txt", &format_text},
               {".jsonl", &format_jsonl},
               {".json", &format_jsonl},
               {".parquet", &format_parquet}};
enum { FORMATS = sizeof formats / sizeof *formats };

struct Reader {
    ReaderSettings settings;
    Inputs inputs;
    size_t next; /* input to open */
    const Format *format;
    void *file;      /* the open one, or NULL */
    uint64_t before; /* bytes consumed from earlier files */
};

/* NULL when the name tells none. */
static const Format *format_of(const char *name) {
    size_t length = strlen(name);
    if (length > 3 && !strcmp(name + length - 3, ".gz"))
        length -= 3;
    else if (length > 4 && !strcmp(name + length - 4, ".zst"))
        length -= 4;
    for (size_t i = 0; i < FORMATS; i++) {
        size_t suffix = strlen(formats[i].suffix);
        if (length > suffix && !strncmp(name + length - suffix, formats[i].suffix, suffix))
            return formats[i].format;
    }
    return NULL;
}

static bool is_readable(const char *name) {
    return format_of(name) != NULL;
}

Reader *reader_open(const char *const *inputs, int count, const ReaderSettings *settings,
                    Error *error) {
    Reader *reader = allocate(1, sizeof *reader, error);
    if (!reader) return NULL;
    reader->settings = *settings;
    if (inputs_find(&reader->inputs, inputs, count, is_readable,
                    ".txt, .jsonl or .json (or these with "
                    ".gz or .zst) or .parquet",
                    error))
        return reader;
    reader_free(reader);
    return NULL;
}

static void close_file(Reader *reader) {
    if (!reader->file) return;
    reader->before += reader->format->consumed(reader->file);
    reader->format->close(reader->file);
    reader->file = NULL;
}

void reader_free(Reader *reader) {
    if (!reader) return;
    close_file(reader);
    inputs_free(&reader->inputs);
    free(reader);
}

static const Format *input_format(const Reader *reader, size_t input) {
    const Format *format = format_of(reader->inputs.paths[input]);
    if (format) return format;
    return reader->settings.field ? &format_jsonl : &format_text;
}

bool reader_has_documents(const Reader *reader) {
    for (size_t i = 0; i < reader->inputs.count; i++)
        if (reader->settings.split_on || input_format(reader, i) != &format_text) return true;
    return false;
}

static bool open_file(Reader *reader, Error *error) {
    reader->format = input_format(reader, reader->next);
    const char *path = reader->inputs.paths[reader->next++];
    reader->file = reader->format->open(path, &reader->settings, error);
    return reader->file != NULL;
}

ReadResult reader_next(Reader *reader, Piece *piece, Error *error) {
    for (;;) {
        if (!reader->file) {
            if (reader->next == reader->inputs.count) return READ_END;
            if (!open_file(reader, error)) return READ_FAILED;
        }
        ReadResult result = reader->format->next(reader->file, piece, error);
        if (result == READ_FAILED) return result;
        if (result == READ_PIECE && piece->size) return result;
        if (result == READ_END && !reader->format->consumed(reader->file)) {
            const char *path = reader->inputs.paths[reader->next - 1];
            fail(error, "%s is empty", strcmp(path, "-") ? path : "standard input");
            return READ_FAILED;
        }
        if (result == READ_END) close_file(reader);
    }
}

uint64_t reader_consumed(const Reader *reader) {
    return reader->before + (reader->file ? reader->format->consumed(reader->file) : 0);
}

uint64_t reader_total(const Reader *reader) {
    return reader->inputs.bytes;
}
