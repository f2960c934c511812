/* A Parquet file: which of its bytes hold the values of one column. */
#ifndef HEARTH_DATA_PARQUET_FILE_H
#define HEARTH_DATA_PARQUET_FILE_H

#include "data/parquet_schema.h"

/* The column's part in one row group: pages, one after the other. */
typedef struct ParquetChunk {
    int64_t offset, size; /* bytes in the file */
    int64_t values;       /* one a row, nulls included */
    int codec;
} ParquetChunk;

typedef struct ParquetFile {
    const char *path; /* the caller's */
    int descriptor;
    int64_t size;
    ParquetColumn column;
    ParquetChunk *chunks; /* of the row groups, empty ones too */
    size_t count, capacity;
    int64_t rows;
} ParquetFile;

/* Reads the metadata, which stands at a file's end. Errors name the file. The strings must outlive it. */
bool parquet_open(ParquetFile *file, const char *path, const char *column, Error *error);
void parquet_close(ParquetFile *file);

/* Puts the file, the column and the row group before an error's message, and returns false. */
bool parquet_fail_within(const ParquetFile *file, size_t row_group, Error *error);

/* Reads bytes that must be there. May be called by several threads at once. */
bool parquet_read(const ParquetFile *file, void *data, size_t size, int64_t offset, Error *error);

#endif
