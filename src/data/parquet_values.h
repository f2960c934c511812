/* The values of a page, one after the other. Nothing is unpacked ahead, so that numbers which a damaged
 * page claims cannot make it take memory. */
#ifndef HEARTH_DATA_PARQUET_VALUES_H
#define HEARTH_DATA_PARQUET_VALUES_H

#include "base/memory.h"
#include "data/parquet_integers.h"
#include "data/parquet_page.h"

typedef struct ParquetText {
    const uint8_t *data; /* NULL = null */
    size_t size;
} ParquetText;

/* The strings that pages of a row group refer to by number. */
typedef struct ParquetDictionary {
    ParquetText *texts; /* in the page that it was made of */
    size_t count, capacity;
} ParquetDictionary;

typedef struct ParquetValues {
    const ParquetColumn *column;
    const ParquetDictionary *dictionary;
    int encoding;
    int32_t left; /* values to come, nulls included */
    HybridReader level, index;
    DeltaReader prefix, length;
    const uint8_t *at, *end; /* of the bytes of strings */
    Bytes previous;          /* the value before, where values share beginnings */
} ParquetValues;

/* Replaces the dictionary's content; the page must outlive it. */
bool parquet_dictionary_set(ParquetDictionary *dictionary, const ParquetPage *page,
                            const ParquetColumn *column, Error *error);
void parquet_dictionary_free(ParquetDictionary *dictionary);

/* Goes to the beginning of a data page, which must outlive its values. A ParquetValues begins zeroed and
 * is reused from page to page. */
bool parquet_values_begin(ParquetValues *values, const ParquetPage *page,
                          const ParquetColumn *column, const ParquetDictionary *dictionary,
                          Error *error);
/* The next of `left` values, valid until the following call; nulls in a row may come as one. */
bool parquet_values_next(ParquetValues *values, ParquetText *text, Error *error);
void parquet_values_free(ParquetValues *values);

#endif
