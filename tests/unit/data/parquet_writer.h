/* Parquet files written byte by byte, well-formed or with one thing wrong, for the tests of this room. Two
 * columns: "id", which has no pages, and the one that texts are written to. */
#ifndef HEARTH_TESTS_PARQUET_WRITER_H
#define HEARTH_TESTS_PARQUET_WRITER_H

#include <lz4.h>
#include <snappy-c.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "support.h"

enum { UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW };
enum {
    PLAIN,
    PLAIN_DICTIONARY = 2,
    BIT_PACKED = 4,
    DELTA_LENGTHS = 6,
    DELTA_PREFIXES,
    RLE_DICTIONARY
};
enum { BYTE_STREAM_SPLIT = 9 };
enum { REQUIRED, OPTIONAL, REPEATED };
enum { T_BOOL = 1, T_I32 = 5, T_I64, T_BINARY = 8, T_LIST, T_STRUCT = 12 };

typedef struct ParquetWriter {
    int codec;
    bool version2, checksums;
    int repetition;                /* of the column */
    const char *name;              /* NULL = "text" */
    int type, length;              /* 0 = BYTE_ARRAY */
    int converted, logical;        /* annotations; 0 = none */
    const char *const *dictionary; /* as written last */
    int dictionary_count;
    /* What a test may have done wrong: */
    int level_encoding;                             /* 0 = RLE */
    int declared_codec;                             /* 0 = the one that is used */
    int64_t added_values, added_offset, added_size; /* to what the metadata says of a row group */
    int32_t added_page_values, added_unpacked;      /* to what page headers say */
    bool encrypted, elsewhere, one_column;
    /* The file so far: */
    Bytes file, groups; /* metadata of row groups */
    int group_count;
    size_t group_start;
    int64_t rows;
} ParquetWriter;

/* Without the care for the disk that file_write() takes, which is slow. */
static inline void put_file(const char *name, const void *data, size_t size) {
    FILE *file = fopen(test_path(name), "wb");
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static inline void put(Bytes *out, const void *data, size_t size) {
    Error error;
    assert_true(bytes_append(out, data, size, &error));
}

static inline void put_byte(Bytes *out, int byte) {
    put(out, &(uint8_t){(uint8_t)byte}, 1);
}

static inline void put_le32(Bytes *out, uint32_t value) {
    for (int i = 0; i < 4; i++) put_byte(out, (int)(value >> 8 * i & 255));
}

static inline void put_varint(Bytes *out, uint64_t value) {
    for (; value > 127; value >>= 7) put_byte(out, (int)(value & 127) | 128);
    put_byte(out, (int)value);
}

static inline void put_zigzag(Bytes *out, int64_t value) {
    put_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

/* Thrift: fields with their full number, so that their order does not matter. */
static inline void put_field(Bytes *out, int id, int type) {
    put_byte(out, type);
    put_zigzag(out, id);
}

static inline void put_int(Bytes *out, int id, int type, int64_t value) {
    put_field(out, id, type);
    put_zigzag(out, value);
}

static inline void put_text(Bytes *out, int id, const char *text) {
    put_field(out, id, T_BINARY);
    put_varint(out, strlen(text));
    put(out, text, strlen(text));
}

static inline void put_list(Bytes *out, int id, int type, int count) {
    put_field(out, id, T_LIST);
    put_byte(out, 15 << 4 | type);
    put_varint(out, (uint64_t)count);
}

/* Bits, lowest first, of `count` values of a width. */
static inline void put_packed(Bytes *out, const uint64_t *values, int count, int width) {
    int used = 0, byte = 0;
    for (int i = 0; i < count; i++)
        for (int b = 0; b < width; b++) {
            byte |= (int)(values[i] >> b & 1) << used++;
            if (used == 8) put_byte(out, byte), used = byte = 0;
        }
    if (used) put_byte(out, byte);
}

/* Runs of eight or more as runs, the others packed. */
static inline void put_hybrid(Bytes *out, const uint64_t *values, int count, int width) {
    for (int i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && values[i + run] == values[i];) run++;
        if (run >= 8) {
            put_varint(out, (uint64_t)run << 1);
            for (int b = 0; b < width; b += 8) put_byte(out, (int)(values[i] >> b & 255));
        } else {
            uint64_t group[8] = {0};
            run = count - i < 8 ? count - i : 8;
            memcpy(group, values + i, (size_t)run * sizeof *values);
            put_varint(out, 3);
            put_packed(out, group, 8, width);
        }
    }
}

static inline int bit_width(uint64_t value) {
    int width = 0;
    for (; value; value >>= 1) width++;
    return width;
}

/* DELTA_BINARY_PACKED: blocks of 128 in 4 miniblocks, those that are not used left out. */
static inline void put_delta(Bytes *out, const int64_t *values, int count) {
    put_varint(out, 128), put_varint(out, 4), put_varint(out, (uint64_t)count);
    put_zigzag(out, count ? values[0] : 0);
    for (int i = 1; i < count; i += 128) {
        uint64_t packed[128] = {0};
        int deltas = count - i < 128 ? count - i : 128, widths[4] = {0};
        int64_t least = INT64_MAX;
        for (int j = i; j < i + deltas; j++)
            if (values[j] - values[j - 1] < least) least = values[j] - values[j - 1];
        for (int j = 0; j < deltas; j++) {
            packed[j] = (uint64_t)(values[i + j] - values[i + j - 1] - least);
            if (bit_width(packed[j]) > widths[j / 32]) widths[j / 32] = bit_width(packed[j]);
        }
        put_zigzag(out, least);
        for (int m = 0; m < 4; m++) put_byte(out, widths[m]);
        for (int m = 0; m * 32 < deltas; m++) put_packed(out, packed + m * 32, 32, widths[m]);
    }
}

static inline void put_plain(Bytes *out, const ParquetWriter *w, const char *text) {
    size_t size = w->length ? (size_t)w->length : strlen(text);
    if (!w->length) put_le32(out, (uint32_t)size);
    put(out, text, size);
}

static inline void put_indexes(Bytes *out, const ParquetWriter *w, const char *const *texts,
                               int count) {
    uint64_t *indexes = calloc((size_t)count + 1, sizeof *indexes);
    for (int i = 0; i < count; i++)
        while ((int)indexes[i] < w->dictionary_count &&
               strcmp(w->dictionary[indexes[i]], texts[i]) != 0)
            indexes[i]++;
    int width = bit_width((uint64_t)w->dictionary_count);
    put_byte(out, width);
    put_hybrid(out, indexes, count, width);
    free(indexes);
}

static inline int64_t shared_beginning(const char *a, const char *b) {
    int64_t size = 0;
    while (a[size] && a[size] == b[size]) size++;
    return size;
}

static inline void put_deltas(Bytes *out, int encoding, const char *const *texts, int count) {
    int64_t *shared = calloc((size_t)count + 1, sizeof *shared);
    int64_t *lengths = calloc((size_t)count + 1, sizeof *lengths);
    for (int i = 0; i < count; i++) {
        if (encoding == DELTA_PREFIXES && i) shared[i] = shared_beginning(texts[i - 1], texts[i]);
        lengths[i] = (int64_t)strlen(texts[i]) - shared[i];
    }
    if (encoding == DELTA_PREFIXES) put_delta(out, shared, count);
    put_delta(out, lengths, count);
    for (int i = 0; i < count; i++) put(out, texts[i] + shared[i], (size_t)lengths[i]);
    free(shared), free(lengths);
}

static inline void put_values(Bytes *out, const ParquetWriter *w, int encoding,
                              const char *const *texts, int count) {
    if (encoding == PLAIN)
        for (int i = 0; i < count; i++) put_plain(out, w, texts[i]);
    else if (encoding == DELTA_LENGTHS || encoding == DELTA_PREFIXES)
        put_deltas(out, encoding, texts, count);
    else
        put_indexes(out, w, texts, count);
}

/* Compressed as whole: gzip in two members, LZ4 in Hadoop's frames of up to 100 bytes. */
static inline void put_compressed(Bytes *out, int codec, const uint8_t *data, size_t size) {
    size_t most = size * 2 + 1000, half = size / 2;
    uint8_t *packed = calloc(most, 1);
    if (!size) data = packed;
    if (codec == UNCOMPRESSED) {
        put(out, data, size);
    } else if (codec == SNAPPY) {
        assert_int_equal(snappy_compress((const char *)data, size, (char *)packed, &most), 0);
        put(out, packed, most);
    } else if (codec == ZSTD) {
        put(out, packed, ZSTD_compress(packed, most, data, size, 1));
    } else if (codec == LZ4_RAW) {
        put(out, packed,
            (size_t)LZ4_compress_default((const char *)data, (char *)packed, (int)size, (int)most));
    }
    for (int part = 0; codec == GZIP && part < 2; part++) {
        z_stream gzip = {.next_out = packed, .avail_out = (uInt)most};
        uint8_t *copy = calloc(size + 1, 1);
        memcpy(copy, data, size);
        gzip.next_in = part ? copy + half : copy;
        gzip.avail_in = (uInt)(part ? size - half : half);
        assert_int_equal(deflateInit2(&gzip, 6, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
        assert_int_equal(deflate(&gzip, Z_FINISH), Z_STREAM_END);
        put(out, packed, gzip.total_out);
        deflateEnd(&gzip);
        free(copy);
    }
    for (size_t i = 0, part; codec == LZ4 && i < size; i += part) {
        part = size - i < 100 ? size - i : 100;
        int count =
            LZ4_compress_default((const char *)data + i, (char *)packed, (int)part, (int)most);
        put_le32(out, __builtin_bswap32((uint32_t)part));
        put_le32(out, __builtin_bswap32((uint32_t)count));
        put(out, packed, (size_t)count);
    }
    free(packed);
}

/* A page: `plain` bytes that are left as they are, and the rest, which is compressed. `kind` is the
 * struct for pages of this type. */
static inline void put_page(ParquetWriter *w, int type, const Bytes *kind, const Bytes *plain,
                            const Bytes *rest) {
    Bytes packed = {0};
    put(&packed, plain->data, plain->size);
    put_compressed(&packed, w->codec, rest->data, rest->size);
    put_int(&w->file, 1, T_I32, type);
    put_int(&w->file, 2, T_I32, (int64_t)(plain->size + rest->size) + w->added_unpacked);
    put_int(&w->file, 3, T_I32, (int64_t)packed.size);
    if (w->checksums)
        put_int(&w->file, 4, T_I32, (int32_t)crc32(0, packed.data, (uInt)packed.size));
    put_field(&w->file, type == 3 ? 8 : type == 2 ? 7 : 5, T_STRUCT);
    put(&w->file, kind->data, kind->size);
    put_byte(&w->file, 0), put_byte(&w->file, 0);
    put(&w->file, packed.data, packed.size);
    bytes_free(&packed);
}

static inline void parquet_begin(ParquetWriter *w) {
    put(&w->file, "PAR1", 4);
    w->group_start = w->file.size;
}

static inline void parquet_dictionary(ParquetWriter *w, const char *const *texts, int count) {
    Bytes kind = {0}, values = {0}, none = {0};
    w->dictionary = texts;
    w->dictionary_count = count;
    for (int i = 0; i < count; i++) put_plain(&values, w, texts[i]);
    put_int(&kind, 1, T_I32, count);
    put_int(&kind, 2, T_I32, PLAIN_DICTIONARY);
    put_page(w, 2, &kind, &none, &values);
    bytes_free(&kind), bytes_free(&values);
}

/* A data page; a NULL among the texts is a null. */
static inline void parquet_page(ParquetWriter *w, int encoding, const char *const *texts,
                                int count) {
    Bytes kind = {0}, levels = {0}, content = {0}, none = {0};
    const char **present = calloc((size_t)count + 1, sizeof *present);
    uint64_t *level = calloc((size_t)count + 1, sizeof *level);
    int there = 0;
    for (int i = 0; i < count; i++)
        if ((level[i] = texts[i] != NULL)) present[there++] = texts[i];
    if (w->repetition == OPTIONAL) put_hybrid(&levels, level, count, 1);
    if (w->repetition == OPTIONAL && !w->version2) {
        put_le32(&content, (uint32_t)levels.size);
        put(&content, levels.data, levels.size);
    }
    /* Without values a page of version 2 may be empty but for its levels. */
    if (there || !w->version2) put_values(&content, w, encoding, present, there);
    put_int(&kind, 1, T_I32, count + w->added_page_values);
    if (w->version2) {
        put_int(&kind, 2, T_I32, count - there);
        put_int(&kind, 3, T_I32, count);
        put_int(&kind, 4, T_I32, encoding);
        put_int(&kind, 5, T_I32, (int64_t)levels.size);
        put_int(&kind, 6, T_I32, 0);
        put_page(w, 3, &kind, &levels, &content);
    } else {
        put_int(&kind, 2, T_I32, encoding);
        put_int(&kind, 3, T_I32, w->level_encoding ? w->level_encoding : 3);
        put_int(&kind, 4, T_I32, 3);
        put_page(w, 0, &kind, &none, &content);
    }
    w->rows += count;
    bytes_free(&kind), bytes_free(&levels), bytes_free(&content);
    free(present), free(level);
}

static inline void put_chunk(ParquetWriter *w, bool text, int64_t values, int64_t size) {
    int type = w->type ? w->type : w->length ? 7 : 6;
    if (w->elsewhere) put_text(&w->groups, 1, "other.parquet");
    put_int(&w->groups, 2, T_I64, 0);
    put_field(&w->groups, 3, T_STRUCT);
    put_int(&w->groups, 1, T_I32, text ? type : 2);
    put_int(&w->groups, 4, T_I32, w->declared_codec ? w->declared_codec : w->codec);
    put_int(&w->groups, 5, T_I64, values);
    put_int(&w->groups, 7, T_I64, size);
    put_int(&w->groups, 9, T_I64, (int64_t)w->group_start + w->added_offset);
    put_byte(&w->groups, 0);
    if (w->encrypted) put_field(&w->groups, 8, T_STRUCT), put_byte(&w->groups, 0);
    put_byte(&w->groups, 0);
}

static inline void parquet_end_group(ParquetWriter *w) {
    int64_t values = w->rows + w->added_values;
    int64_t size = (int64_t)(w->file.size - w->group_start) + w->added_size;
    put_list(&w->groups, 1, T_STRUCT, w->one_column ? 1 : 2);
    if (!w->one_column) put_chunk(w, false, values, 0);
    put_chunk(w, true, values, size);
    put_int(&w->groups, 3, T_I64, w->rows + w->added_values);
    put_byte(&w->groups, 0);
    w->group_count++;
    w->group_start = w->file.size;
    w->rows = 0;
}

static inline void put_schema(Bytes *out, const ParquetWriter *w) {
    put_list(out, 2, T_STRUCT, 3);
    put_text(out, 4, "root"), put_int(out, 5, T_I32, 2), put_byte(out, 0);
    put_int(out, 1, T_I32, 2), put_int(out, 3, T_I32, 0), put_text(out, 4, "id"), put_byte(out, 0);
    put_int(out, 1, T_I32, w->type ? w->type : w->length ? 7 : 6);
    if (w->length) put_int(out, 2, T_I32, w->length);
    put_int(out, 3, T_I32, w->repetition);
    put_text(out, 4, w->name ? w->name : "text");
    if (w->converted) put_int(out, 6, T_I32, w->converted);
    if (w->logical) { /* a union of empty structs */
        put_field(out, 10, T_STRUCT), put_field(out, w->logical, T_STRUCT);
        put_byte(out, 0), put_byte(out, 0);
    }
    put_byte(out, 0);
}

/* Writes the metadata and the file, whose path it returns. */
static inline const char *parquet_finish(ParquetWriter *w, const char *file) {
    size_t start = w->file.size;
    put_int(&w->file, 1, T_I32, 2);
    put_schema(&w->file, w);
    put_int(&w->file, 3, T_I64, 0);
    put_list(&w->file, 4, T_STRUCT, w->group_count);
    put(&w->file, w->groups.data, w->groups.size);
    put_text(&w->file, 6, "test"), put_byte(&w->file, 0);
    put_le32(&w->file, (uint32_t)(w->file.size - start));
    put(&w->file, "PAR1", 4);
    put_file(file, w->file.data, w->file.size);
    bytes_free(&w->file), bytes_free(&w->groups);
    return test_path(file);
}

#endif
