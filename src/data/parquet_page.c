#include "data/parquet_page.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/integer.h"
#include "data/parquet_codec.h"

enum { DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 };
enum { LEVELS_RLE = 3 };

/* Headers hold the smallest and largest value at times, so they can be of any size. */
enum { HEADER_BYTES = 1 << 13, HEADER_BYTES_MOST = 1 << 28 };

ParquetPageReader parquet_page_reader(const ParquetFile *file, size_t row_group) {
    const ParquetChunk *chunk = &file->chunks[row_group];
    return (ParquetPageReader){.file = file,
                               .row_group = row_group,
                               .offset = chunk->offset,
                               .end = chunk->offset + chunk->size,
                               .values = chunk->values};
}

void parquet_page_reader_free(ParquetPageReader *reader) {
    bytes_free(&reader->buffer);
}

/* The struct for pages of one kind; their fields have other numbers in version 2. */
static void read_kind(Thrift *thrift, ParquetPageHeader *header) {
    ThriftField field = {0};
    while (thrift_next_field(thrift, &field)) {
        int id = field.id;
        if (id == 1)
            header->values = thrift_int32(thrift, &field);
        else if (id == (header->version2 ? 4 : 2))
            header->encoding = thrift_int32(thrift, &field);
        else if (id == 3 && !header->version2 && !header->dictionary)
            header->level_encoding = thrift_int32(thrift, &field);
        else if (id == 5 && header->version2)
            header->level_size = thrift_int32(thrift, &field);
        else if (id == 6 && header->version2)
            header->repetition_size = thrift_int32(thrift, &field);
        else if (id == 7 && header->version2)
            header->compressed = thrift_boolean(thrift, &field);
        else
            thrift_skip(thrift, &field);
    }
}

/* Reads a header, whose struct for the kind of page is field 5, 7 or 8; *kind is -1 without one. */
static void read_header(Thrift *thrift, ParquetPageHeader *header, int *kind) {
    static const int kind_fields[] = {5, 6, 7, 8};
    int type = -1;
    ThriftField field = {0};
    *header = (ParquetPageHeader){.compressed = true, .level_encoding = LEVELS_RLE};
    *kind = -1;
    while (thrift_next_field(thrift, &field)) {
        if (field.id == 1) {
            type = thrift_int32(thrift, &field);
            header->dictionary = type == DICTIONARY_PAGE;
            header->version2 = type == DATA_PAGE_V2;
        } else if (field.id == 2) {
            header->unpacked_size = thrift_int32(thrift, &field);
        } else if (field.id == 3) {
            header->packed_size = thrift_int32(thrift, &field);
        } else if (field.id == 4) {
            header->checksum = (uint32_t)thrift_int32(thrift, &field);
            header->has_checksum = true;
        } else if (type >= DATA_PAGE && type <= DATA_PAGE_V2 && field.id == kind_fields[type] &&
                   type != INDEX_PAGE && thrift_struct(thrift, &field)) {
            read_kind(thrift, header);
            *kind = type;
        } else {
            if (type == INDEX_PAGE) *kind = type;
            thrift_skip(thrift, &field);
        }
    }
}

/* Reads the header at the reader's place and moves past it. */
static bool next_header(ParquetPageReader *reader, ParquetPageHeader *header, int *kind,
                        Error *error) {
    for (size_t window = HEADER_BYTES;; window *= 4) {
        size_t left = (size_t)(reader->end - reader->offset), size = left < window ? left : window;
        if (!reserve(&reader->buffer.data, &reader->buffer.capacity, size, 1, error) ||
            !parquet_read(reader->file, reader->buffer.data, size, reader->offset, error))
            return false;
        Thrift thrift = {reader->buffer.data, reader->buffer.data + size, false};
        read_header(&thrift, header, kind);
        if (!thrift.damaged) {
            reader->offset += thrift.at - reader->buffer.data;
            return true;
        }
        if (size == left || window >= HEADER_BYTES_MOST)
            return fail(error, "damaged: there is no page header at byte %lld",
                        (long long)reader->offset);
    }
}

static bool check_header(const ParquetPageReader *reader, const ParquetPageHeader *header,
                         Error *error) {
    int64_t at = reader->offset, levels = (int64_t)header->level_size + header->repetition_size;
    if (header->packed_size < 0 || header->packed_size > reader->end - at)
        return fail(error, "damaged: the page at byte %lld does not fit into its %lld bytes",
                    (long long)at, (long long)(reader->end - at));
    if (header->packed_size > PARQUET_PAGE_BYTES || header->unpacked_size > PARQUET_PAGE_BYTES)
        return fail(error,
                    "the page at byte %lld has %d bytes, and %d decompressed; write the file with "
                    "smaller pages, of at most %d",
                    (long long)at, header->packed_size, header->unpacked_size, PARQUET_PAGE_BYTES);
    if (header->unpacked_size < 0 || header->level_size < 0 || header->repetition_size < 0 ||
        levels > smaller(header->packed_size, header->unpacked_size) || header->values < 0)
        return fail(error, "damaged: the header of the page at byte %lld makes no sense",
                    (long long)at);
    return header->dictionary || header->values <= reader->values ||
           fail(error, "damaged: it has more values than the %lld that were announced",
                (long long)reader->file->chunks[reader->row_group].values);
}

bool parquet_page_header(ParquetPageReader *reader, ParquetPageHeader *header, bool *found,
                         Error *error) {
    int kind;
    for (*found = true;;) {
        if (!reader->values) return *found = false, true;
        if (reader->offset == reader->end)
            return fail(error, "damaged: %lld of its %lld values are missing",
                        (long long)reader->values,
                        (long long)reader->file->chunks[reader->row_group].values);
        if (!next_header(reader, header, &kind, error) || !check_header(reader, header, error))
            return false;
        if (kind != INDEX_PAGE && kind >= 0) return true;
        reader->offset += header->packed_size; /* nothing that we use */
    }
}

size_t parquet_page_cost(const ParquetPageHeader *header) {
    return (size_t)header->unpacked_size + (size_t)header->packed_size;
}

static bool unpack(const ParquetPageReader *reader, const ParquetPageHeader *header, uint8_t *out,
                   Error *error) {
    const uint8_t *in = reader->buffer.data;
    size_t levels = (size_t)header->level_size + (size_t)header->repetition_size;
    size_t packed = (size_t)header->packed_size - levels;
    size_t unpacked = (size_t)header->unpacked_size - levels;
    memcpy(out, in, levels);
    if (!unpacked) return true; /* nulls only: then nothing need be there to decompress */
    int codec = header->compressed ? reader->file->chunks[reader->row_group].codec : 0;
    return parquet_decompress(codec, in + levels, packed, out + levels, unpacked, error);
}

/* Sets where levels and values begin. In version 1 the levels' size stands before them. */
static bool divide(ParquetPage *page, const ParquetColumn *column, Error *error) {
    const ParquetPageHeader *header = &page->header;
    page->end = page->data + header->unpacked_size;
    page->levels = page->data + header->repetition_size;
    page->content = page->levels + header->level_size;
    if (header->version2 || header->dictionary || !column->levels) return true;
    if (header->level_encoding != LEVELS_RLE)
        return fail(error, "its levels are not encoded as RLE, which alone is supported");
    uint32_t size = 0, left = (uint32_t)header->unpacked_size;
    for (unsigned i = 0; i < 4 && left >= 4; i++) size |= (uint32_t)page->data[i] << 8 * i;
    if (left < 4 || size > left - 4) return fail(error, "damaged: its levels do not fit");
    page->levels += 4;
    page->content = page->levels + size;
    return true;
}

static bool read_page(ParquetPageReader *reader, ParquetPage *page, Error *error) {
    const ParquetPageHeader *header = &page->header;
    size_t size = (size_t)header->packed_size;
    if (!reserve(&reader->buffer.data, &reader->buffer.capacity, size, 1, error) ||
        !parquet_read(reader->file, reader->buffer.data, size, reader->offset, error))
        return false;
    if (header->has_checksum && crc32_z(0, reader->buffer.data, size) != header->checksum)
        return fail(error, "damaged: its checksum does not match");
    return unpack(reader, header, page->data, error) && divide(page, &reader->file->column, error);
}

ParquetPage *parquet_page_read(ParquetPageReader *reader, const ParquetPageHeader *header,
                               Error *error) {
    size_t size = sizeof(ParquetPage) + (size_t)header->unpacked_size;
    ParquetPage *page = malloc(size); /* not zeroed: all of it is written */
    if (!page) return fail_memory(error, size), NULL;
    *page = (ParquetPage){.header = *header, .row_group = reader->row_group};
    if (!read_page(reader, page, error)) {
        fail_within(error, "the page at byte %lld", (long long)reader->offset);
        free(page);
        return NULL;
    }
    reader->offset += header->packed_size;
    if (!header->dictionary) reader->values -= header->values;
    return page;
}
