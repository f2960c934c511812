/* The reader: documents out of text files, in a fixed order and in bounded memory.
 *
 * An input is a file, a directory (every .txt, .jsonl, .json and .parquet in it, recursively, in byte
 * order of their names), a glob pattern, or "-" for standard input. Text may be gzip or zstd, told by
 * its first bytes. A .txt file is one document, or several with `split_on`; a .jsonl or .json file holds
 * one object a line, whose string `field` is a document; of a .parquet file, the strings of column
 * `field` are. A file of another suffix and standard input are text, or JSON lines when `field` is
 * given. Documents without any text, nulls among them, are skipped. Bytes are kept as they are, valid
 * UTF-8 or not.
 *
 * A document comes in one or more pieces of at most READER_PIECE bytes, so a text file may be one line
 * of any size. A piece ends before a space inside a line where there is one, which is where the split
 * patterns of tokenizers end a word: pieces encoded one by one give the ids of the whole. A JSON line
 * is held in memory and is at most READER_LINE bytes. */
#ifndef HEARTH_DATA_READER_H
#define HEARTH_DATA_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { READER_PIECE = 1 << 20, READER_LINE = 1 << 28 };

typedef struct ReaderSettings {
    const char *field;    /* JSON lines: which string of each object; Parquet: which column, by its
                             path ("article.body"); NULL = "text" */
    const char *split_on; /* text: what stands between documents; \n, \t, \r, \0 and \\ are
                             understood; NULL = a file is one document */
} ReaderSettings;

typedef struct Piece {
    const uint8_t *text; /* valid until the next call; not NUL-terminated */
    size_t size;         /* 1..READER_PIECE */
    bool begins;         /* a document begins with this piece; otherwise the last one goes on */
} Piece;

typedef struct Reader Reader;

/* Finds the files; missing ones, and directories or patterns without any, are errors here. The strings
 * must outlive the reader. */
Reader *reader_open(const char *const *inputs, int count, const ReaderSettings *settings,
                    Error *error);
void reader_free(Reader *reader);

/* Whether any input says where its documents end: JSON lines, Parquet, text with `split_on`. Otherwise all are
 * plain text. */
bool reader_has_documents(const Reader *reader);

typedef enum ReadResult { READ_FAILED, READ_PIECE, READ_END } ReadResult;

/* The next piece. Errors (an empty file, a truncated .gz, a malformed line, ...) name the file and,
 * for JSON lines, the line; for Parquet, the column and the row group, counted from 0. */
ReadResult reader_next(Reader *reader, Piece *piece, Error *error);

/* Bytes read so far and in all, as they lie on disk; the total is 0 when it is unknown (a pipe). */
uint64_t reader_consumed(const Reader *reader);
uint64_t reader_total(const Reader *reader);

#endif
