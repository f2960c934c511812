/* The pages of a Parquet file in order, read and decompressed ahead by threads, a row group each. */
#ifndef HEARTH_DATA_PARQUET_QUEUE_H
#define HEARTH_DATA_PARQUET_QUEUE_H

#include "data/parquet_page.h"

/* Pages that are read ahead take at most this much memory; a larger one waits until it is wanted. */
enum { PARQUET_AHEAD_BYTES = 64 << 20 };

typedef struct ParquetQueue ParquetQueue;

/* The file must outlive it. */
ParquetQueue *parquet_queue_open(const ParquetFile *file, Error *error);
void parquet_queue_free(ParquetQueue *queue);

/* Hands out the next page, to be given back; *page is NULL after the last one. Errors come
 * after all pages before them. */
bool parquet_queue_next(ParquetQueue *queue, ParquetPage **page, Error *error);
/* Takes a page back; NULL is allowed. */
void parquet_queue_release(ParquetQueue *queue, ParquetPage *page);

#endif
