/* The pages of a column chunk, read one after the other, checked and decompressed. */
#ifndef HEARTH_DATA_PARQUET_PAGE_H
#define HEARTH_DATA_PARQUET_PAGE_H

#include "base/memory.h"
#include "data/parquet_file.h"

/* What a page may take, compressed and not: as much as a row of 1024 documents of 1 MiB, which writers
 * put into one page. Sizes are checked before memory is allocated. */
enum { PARQUET_PAGE_BYTES = 1 << 30 };

typedef struct ParquetPageHeader {
    bool dictionary;
    int32_t values;                     /* nulls included */
    int encoding, level_encoding;       /* by their numbers in the format */
    int32_t packed_size, unpacked_size; /* bytes, in the file and in memory */
    bool has_checksum;
    uint32_t checksum; /* CRC-32 of the bytes in the file */
    bool version2; /* then levels stand before the compressed part, and their sizes are known: */
    int32_t repetition_size, level_size;
    bool compressed;
} ParquetPageHeader;

typedef struct ParquetPage {
    ParquetPageHeader header;
    size_t row_group;
    struct ParquetPage *next;              /* for whoever owns it */
    const uint8_t *levels, *content, *end; /* definition levels; values; within data */
    uint8_t data[];
} ParquetPage;

typedef struct ParquetPageReader {
    const ParquetFile *file;
    size_t row_group;
    int64_t offset, end; /* what is left of the chunk */
    int64_t values;      /* that are left */
    Bytes buffer;
} ParquetPageReader;

/* A reader of row group `row_group`; parquet_page_reader_free() when it is no longer used. */
ParquetPageReader parquet_page_reader(const ParquetFile *file, size_t row_group);
void parquet_page_reader_free(ParquetPageReader *reader);

/* The next page's header; *found is false when all values have been read. */
bool parquet_page_header(ParquetPageReader *reader, ParquetPageHeader *header, bool *found,
                         Error *error);
/* The memory that reading the page takes. */
size_t parquet_page_cost(const ParquetPageHeader *header);
/* The page itself, to be freed with free(); NULL with an error. */
ParquetPage *parquet_page_read(ParquetPageReader *reader, const ParquetPageHeader *header,
                               Error *error);

#endif
