/* The columns of a Parquet file, and the one among them that documents are read from. */
#ifndef HEARTH_DATA_PARQUET_SCHEMA_H
#define HEARTH_DATA_PARQUET_SCHEMA_H

#include <stddef.h>

#include "base/error.h"
#include "data/parquet_thrift.h"

typedef struct ParquetColumn {
    const char *name; /* its path, such as "text" or "article.body" */
    size_t index;     /* among the columns of every row group */
    size_t columns;   /* that a row group has */
    int type;         /* BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY, by their numbers in the format */
    size_t length;    /* of every value, in bytes; 0 = each has a length of its own */
    unsigned levels;  /* the definition level of a value; lower ones say null. 0 = no nulls */
} ParquetColumn;

/* Finds the column of that name in a file's metadata. One that does not exist, is there twice, does not hold
 * strings or repeats within a row is an error that says so. */
bool parquet_schema_find(Thrift metadata, const char *name, ParquetColumn *column, Error *error);

#endif
