/* File formats that documents are read from. To add one, write its functions and add a row to the table in
 * reader.c. */
#ifndef HEARTH_DATA_FORMAT_H
#define HEARTH_DATA_FORMAT_H

#include "data/reader.h"

typedef struct Format {
    void *(*open)(const char *path, const ReaderSettings *settings, Error *error);
    void (*close)(void *state);
    /* As reader_next(), for one file; a piece may be empty. */
    ReadResult (*next)(void *state, Piece *piece, Error *error);
    uint64_t (*consumed)(const void *state);
} Format;

extern const Format format_text, format_jsonl, format_parquet;

/* How much of text that goes on to take as a piece, at most READER_PIECE of the `size` given. */
size_t piece_size(const uint8_t *text, size_t size);

#endif
