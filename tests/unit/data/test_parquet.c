/* Parquet files written here, well-formed and damaged in every way that was thought of. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/reader.h"
#include "faults.h"
#include "parquet_writer.h"

#define COUNT(texts) (int)(sizeof(texts) / sizeof *(texts))

static const char *const words[] = {"one",           "two", NULL,  "two two",     "",
                                    "two two three", "one", NULL,  "caf\xC3\xA9", "\xFF not UTF-8",
                                    "one",           "one", "one", "one",         "one",
                                    "one",           "one", "one", "one",         "two"};
static const char *const nothing[40] = {NULL};
static const char *const full[] = {"two", "one", "", "caf\xC3\xA9", "two two", "one", "one"};
static const char *const distinct[] = {
    "", "one", "two", "two two", "two two three", "caf\xC3\xA9", "\xFF not UTF-8"};

/* All documents, each followed by '|', in a buffer that the next call reuses; NULL on failure. */
static const char *read_all(const char *path, const char *field, Error *error) {
    static Bytes all;
    Piece piece;
    ReadResult result = READ_FAILED;
    all.size = 0;
    Reader *reader = reader_open(&path, 1, &(ReaderSettings){.field = field}, error);
    while (reader && (result = reader_next(reader, &piece, error)) == READ_PIECE) {
        assert_in_range(piece.size, 1, READER_PIECE);
        assert_true(reader_consumed(reader) < reader_total(reader));
        if (piece.begins && all.size) put(&all, "|", 1);
        put(&all, piece.text, piece.size);
    }
    if (result == READ_END) assert_int_equal(reader_consumed(reader), reader_total(reader));
    reader_free(reader);
    put(&all, "|", 2);
    return result == READ_END ? (const char *)all.data : NULL;
}

static void append_texts(Bytes *out, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        if (texts[i] && *texts[i]) put(out, texts[i], strlen(texts[i])), put(out, "|", 1);
}

static void gives(const char *path, const char *expected) {
    Error error;
    const char *all = read_all(path, NULL, &error);
    assert_done(all, error);
    assert_string_equal(all, expected);
}

/* The file must be refused by a message that names it and contains `text`. */
static void refuses(const char *path, const char *text) {
    Error error;
    assert_fails_with(read_all(path, NULL, &error), error, text);
    assert_non_null(strstr(error.message, path));
}

static bool uses_dictionary(int encoding) {
    return encoding == PLAIN_DICTIONARY || encoding == RLE_DICTIONARY;
}

/* Three row groups of some pages, some of them empty or of nulls only; appends what must be read. */
static void write_pages(ParquetWriter *w, int encoding, Bytes *expected) {
    bool nulls = w->repetition == OPTIONAL;
    parquet_begin(w);
    for (int group = 0; group < 3; group++) {
        if (uses_dictionary(encoding)) parquet_dictionary(w, distinct, COUNT(distinct));
        for (int page = 0; page < 2; page++) {
            const char *const *texts = nulls ? words : full;
            int count = nulls ? COUNT(words) - group : COUNT(full) - group;
            parquet_page(w, encoding, texts, count);
            append_texts(expected, texts, count);
            parquet_page(w, encoding, texts, 0);
            if (nulls) parquet_page(w, encoding, nothing, COUNT(nothing));
        }
        parquet_end_group(w);
    }
}

static void test_every_way_of_writing(void **state) {
    (void)state;
    static const int encodings[] = {PLAIN, PLAIN_DICTIONARY, DELTA_LENGTHS, DELTA_PREFIXES,
                                    RLE_DICTIONARY};
    static const int codecs[] = {UNCOMPRESSED, SNAPPY, GZIP, LZ4, ZSTD, LZ4_RAW};
    for (int i = 0; i < 5 * 6 * 8; i++) {
        int encoding = encodings[i % 5];
        ParquetWriter w = {.codec = codecs[i / 5 % 6],
                           .version2 = i / 30 & 1,
                           .repetition = i / 60 & 1,
                           .checksums = i / 120};
        Bytes expected = {0};
        write_pages(&w, encoding, &expected);
        put_byte(&expected, 0);
        gives(parquet_finish(&w, "ways.parquet"), (char *)expected.data);
        bytes_free(&expected);
    }
}

static void test_dictionary_then_plain(void **state) {
    (void)state;
    static const char *const first[] = {"a", "b"}, *const second[] = {"c", "c"};
    ParquetWriter w = {.codec = ZSTD};
    parquet_begin(&w);
    parquet_dictionary(&w, first, 2);
    parquet_page(&w, PLAIN_DICTIONARY, first, 2);
    parquet_page(&w, PLAIN, second, 2);
    parquet_page(&w, RLE_DICTIONARY, first + 1, 1);
    parquet_end_group(&w);
    parquet_end_group(&w); /* without rows */
    parquet_dictionary(&w, second, 1);
    parquet_page(&w, RLE_DICTIONARY, second, 2);
    parquet_end_group(&w);
    gives(parquet_finish(&w, "fallback.parquet"), "a|b|c|c|b|c|c|");

    w = (ParquetWriter){.codec = ZSTD}; /* a dictionary is of its row group only */
    parquet_begin(&w);
    parquet_dictionary(&w, first, 2);
    parquet_page(&w, RLE_DICTIONARY, first, 2);
    parquet_end_group(&w);
    parquet_page(&w, RLE_DICTIONARY, first, 2);
    parquet_end_group(&w);
    refuses(
        parquet_finish(&w, "lost.parquet"),
        "column \"text\", row group 1: damaged: a page refers to string 0 of a dictionary of 0");
}

static void test_long_differences(void **state) {
    (void)
        state; /* more than a block of 128, and the widths of miniblocks up to that of 300 bytes */
    const char *texts[300];
    Bytes expected = {0};
    static char letters[301];
    memset(letters, 'x', 300);
    for (int i = 0; i < 300; i++) texts[i] = letters + (i * 7919 + i / 100 * 31) % 300;
    append_texts(&expected, texts, 300);
    put_byte(&expected, 0);
    for (int encoding = DELTA_LENGTHS; encoding <= DELTA_PREFIXES; encoding++) {
        ParquetWriter w = {0};
        parquet_begin(&w);
        parquet_page(&w, encoding, texts, 300);
        parquet_end_group(&w);
        gives(parquet_finish(&w, "long.parquet"), (char *)expected.data);
    }
    bytes_free(&expected);
}

static void test_fixed_length(void **state) {
    (void)state;
    static const char *const texts[] = {"abc", "xyz", "abc"};
    ParquetWriter w = {.length = 3};
    parquet_begin(&w);
    parquet_dictionary(&w, texts, 2);
    parquet_page(&w, RLE_DICTIONARY, texts, 3);
    parquet_page(&w, PLAIN, texts, 3);
    parquet_end_group(&w);
    gives(parquet_finish(&w, "fixed.parquet"), "abc|xyz|abc|abc|xyz|abc|");
    w = (ParquetWriter){.length = -3};
    parquet_begin(&w);
    refuses(parquet_finish(&w, "negative.parquet"), "are -3 bytes long");
}

static long peak_kilobytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Forty row groups with a document of 8 MB each come in order, in pieces and in bounded memory. */
static void test_many_row_groups(void **state) {
    (void)state;
    enum { GROUPS = 40, SIZE = 8 << 20 };
    char *text = malloc(SIZE + 1);
    ParquetWriter w = {.codec = ZSTD};
    parquet_begin(&w);
    for (int group = 0; group < GROUPS; group++) {
        memset(text, 'a' + group % 26, SIZE);
        text[SIZE] = 0;
        parquet_page(&w, PLAIN, (const char *const[]){text}, 1);
        parquet_end_group(&w);
    }
    const char *path = parquet_finish(&w, "many.parquet");
    free(text);
    Error error;
    Piece piece;
    ReadResult result;
    int documents = 0;
    size_t size = SIZE;
    long before = peak_kilobytes();
    Reader *reader = reader_open(&path, 1, &(ReaderSettings){0}, &error);
    assert_done(reader, error);
    while ((result = reader_next(reader, &piece, &error)) == READ_PIECE) {
        if (!documents) usleep(300000); /* for all to be read ahead that may be */
        if (piece.begins) assert_int_equal(size, SIZE), size = 0, documents++;
        for (size_t i = 0; i < piece.size; i += 4095)
            assert_int_equal(piece.text[i], 'a' + (documents - 1) % 26);
        size += piece.size;
    }
    assert_int_equal(result, READ_END);
    assert_int_equal(documents, GROUPS);
    reader_free(reader);
#ifndef __SANITIZE_ADDRESS__
    assert_true(peak_kilobytes() - before < 96 << 10);
#endif
    (void)before;
}

static void test_stopping_early(void **state) {
    (void)state;
    Error error;
    Piece piece;
    Bytes unused = {0};
    ParquetWriter w = {.codec = ZSTD, .repetition = OPTIONAL};
    write_pages(&w, RLE_DICTIONARY, &unused);
    bytes_free(&unused);
    const char *path = parquet_finish(&w, "early.parquet");
    for (int pieces = 0; pieces < 50; pieces++) {
        Reader *reader = reader_open(&path, 1, &(ReaderSettings){0}, &error);
        assert_done(reader, error);
        for (int i = 0; i < pieces; i++) reader_next(reader, &piece, &error);
        reader_free(reader);
    }
}

/* Writes one page with the settings of *w. */
static const char *write_one(ParquetWriter w, int encoding) {
    parquet_begin(&w);
    if (uses_dictionary(encoding)) parquet_dictionary(&w, distinct, COUNT(distinct));
    parquet_page(&w, encoding, full, COUNT(full));
    parquet_end_group(&w);
    return parquet_finish(&w, "one.parquet");
}

static void test_columns_that_hold_no_documents(void **state) {
    (void)state;
    Error error;
    const char *path = write_one((ParquetWriter){.name = "body"}, PLAIN);
    refuses(path, "no column \"text\"; --field chooses from id, body");
    assert_string_equal(read_all(path, "body", &error), "two|one|caf\xC3\xA9|two two|one|one|");
    assert_fails_with(read_all(path, "id", &error), error,
                      "column \"id\" holds INT64, not strings");
    assert_fails_with(read_all(path, "", &error), error, "no column \"\"");
    refuses(write_one((ParquetWriter){.repetition = REPEATED}, PLAIN), "\"text\" is a list");
    refuses(write_one((ParquetWriter){.converted = 5}, PLAIN), "\"text\" holds DECIMAL");
    refuses(write_one((ParquetWriter){.logical = 14}, PLAIN), "\"text\" holds UUID");
    gives(write_one((ParquetWriter){.converted = 19, .logical = 12}, PLAIN), /* JSON */
          "two|one|caf\xC3\xA9|two two|one|one|");
    refuses(write_one((ParquetWriter){.type = 3}, PLAIN), "\"text\" holds INT96");
    refuses(write_one((ParquetWriter){.type = 9}, PLAIN), "schema");
    refuses(write_one((ParquetWriter){.type = 1, .logical = 11}, PLAIN), /* as pyarrow writes it */
            "\"text\" holds nothing but nulls");
    path = write_one((ParquetWriter){.name = "id"}, PLAIN);
    assert_fails_with(read_all(path, "id", &error), error, "more than one column is called \"id\"");
    assert_non_null(strstr(error.message, path));
}

static void test_what_is_not_supported(void **state) {
    (void)state;
    refuses(write_one((ParquetWriter){.declared_codec = BROTLI}, PLAIN), "compressed with BROTLI");
    refuses(write_one((ParquetWriter){.declared_codec = LZO}, PLAIN), "compressed with LZO");
    refuses(write_one((ParquetWriter){.declared_codec = 8}, PLAIN), "that is unknown (8)");
    refuses(write_one((ParquetWriter){.encrypted = true}, PLAIN), "row group 0: encrypted");
    refuses(write_one((ParquetWriter){.elsewhere = true}, PLAIN), "kept in another file");
    refuses(write_one((ParquetWriter){0}, BYTE_STREAM_SPLIT), "encoded as BYTE_STREAM_SPLIT");
    refuses(write_one((ParquetWriter){0}, 77), "in a way that is unknown (77)");
    refuses(write_one((ParquetWriter){.repetition = OPTIONAL, .level_encoding = BIT_PACKED}, PLAIN),
            "levels are not encoded as RLE");
}

static void test_numbers_that_do_not_fit(void **state) {
    (void)state;
    refuses(write_one((ParquetWriter){.added_values = 1}, PLAIN), "1 of its 8 values are missing");
    refuses(write_one((ParquetWriter){.added_values = -1}, PLAIN), "more values than the 6");
    refuses(write_one((ParquetWriter){.added_values = -8}, PLAIN), "does not fit the schema");
    refuses(write_one((ParquetWriter){.added_size = 100000}, PLAIN), "do not lie within the file");
    refuses(write_one((ParquetWriter){.added_size = INT64_MAX - 1000}, PLAIN), "within the file");
    refuses(write_one((ParquetWriter){.added_size = -1}, PLAIN), "does not fit into its");
    refuses(write_one((ParquetWriter){.added_offset = 100000}, PLAIN), "within the file");
    refuses(write_one((ParquetWriter){.added_offset = -1}, PLAIN), "within the file");
    refuses(write_one((ParquetWriter){.added_offset = INT64_MAX - 4}, PLAIN), "within the file");
    refuses(write_one((ParquetWriter){.added_page_values = -8}, PLAIN), "makes no sense");
    refuses(write_one((ParquetWriter){.added_page_values = 1, .added_values = 1}, PLAIN),
            "values do not fit");
    refuses(write_one((ParquetWriter){.one_column = true}, PLAIN),
            "has 1 columns and the schema 2");
    refuses(write_one((ParquetWriter){.codec = ZSTD, .added_unpacked = 1}, PLAIN), "as ZSTD");
    refuses(write_one((ParquetWriter){.codec = ZSTD, .added_unpacked = -1}, PLAIN), "as ZSTD");
    refuses(write_one((ParquetWriter){.codec = ZSTD, .added_unpacked = 1 << 30}, PLAIN),
            "write the file with smaller pages");
    for (int codec = UNCOMPRESSED; codec <= LZ4_RAW; codec++)
        if (codec != LZO && codec != BROTLI)
            for (int added = -100; added <= 100; added += 10)
                if (added)
                    refuses(
                        write_one((ParquetWriter){.codec = codec, .added_unpacked = added}, PLAIN),
                        "row group 0");
}

static void flip_byte(const char *path, long place) {
    FILE *file = fopen(path, "r+b");
    fseek(file, place, SEEK_SET);
    int byte = getc(file);
    fseek(file, place, SEEK_SET);
    putc(byte ^ 1, file);
    fclose(file);
}

static void test_checksums(void **state) {
    (void)state;
    for (int version2 = 0; version2 < 2; version2++) {
        ParquetWriter w = {.checksums = true, .version2 = version2};
        Bytes file;
        Error error;
        const char *path = write_one(w, PLAIN);
        gives(path, "two|one|caf\xC3\xA9|two two|one|one|");
        file = (Bytes){0};
        assert_done(file_read(path, 10000, &file, &error), error);
        const uint8_t *found = memmem(file.data, file.size, "caf", 3);
        flip_byte(path, found - file.data);
        refuses(path, "checksum does not match");
        bytes_free(&file);
    }
}

static void test_what_is_no_parquet(void **state) {
    (void)state;
    Error error;
    Bytes file = {0};
    put_file("no.parquet", "", 0);
    refuses(test_path("no.parquet"), "is empty");
    put_file("no.parquet", "PAR1PAR1", 8);
    refuses(test_path("no.parquet"), "too short");
    put_file("no.parquet", "some text, no more", 18);
    refuses(test_path("no.parquet"), "does not begin with PAR1");
    put_file("no.parquet", "PAR1\1\0\0\0PAR1", 12);
    refuses(test_path("no.parquet"), "metadata of 1 bytes does not fit into its 12 bytes");
    put_file("no.parquet", "PAR1\xFF\xFF\xFF\xFFPAR1", 12);
    refuses(test_path("no.parquet"), "metadata of 4294967295 bytes");
    put_file("no.parquet", "PAR1\0\1\0\0\0PAR1", 13);
    refuses(test_path("no.parquet"), "schema");
    put_file("no.parquet", "PARE\0\1\0\0\0PARE", 13);
    refuses(test_path("no.parquet"), "encrypted");
    const char *path = write_one((ParquetWriter){0}, PLAIN);
    assert_done(file_read(path, 10000, &file, &error), error);
    uint8_t packed[4000];
    put_file("packed.parquet.zst", packed,
             ZSTD_compress(packed, sizeof packed, file.data, file.size, 1));
    refuses(test_path("packed.parquet.zst"), "compressed as a whole");
    put_file("other.name", file.data, file.size);
    refuses(test_path("other.name"), "is Parquet");
    assert_int_equal(mkfifo(test_path("pipe.parquet"), 0600), 0);
    int descriptor = open(test_path("pipe.parquet"), O_RDWR);
    refuses(test_path("pipe.parquet"), "not a regular file");
    close(descriptor);
    bytes_free(&file);
}

/* A schema of groups within groups, and metadata that is skipped, of any depth. */
static void test_deep_nesting(void **state) {
    (void)state;
    for (int skipped = 0; skipped < 2; skipped++) {
        Bytes file = {0};
        put(&file, "PAR1", 4);
        if (skipped) {
            for (int i = 0; i < 100000; i++) put_field(&file, 99, T_STRUCT);
        } else {
            put_list(&file, 2, T_STRUCT, 100000);
            for (int i = 0; i < 100000; i++) put_int(&file, 5, T_I32, 1), put_byte(&file, 0);
        }
        put_byte(&file, 0);
        put_le32(&file, (uint32_t)file.size - 4);
        put(&file, "PAR1", 4);
        put_file("deep.parquet", file.data, file.size);
        refuses(test_path("deep.parquet"), skipped ? "cannot be read" : "makes no sense");
        bytes_free(&file);
    }
}

/* Reads a damaged file: there must be no crash, and a message that names the file if it is refused. */
static bool survives(const Bytes *file) {
    Error error;
    put_file("damaged.parquet", file->data, file->size);
    const char *path = test_path("damaged.parquet");
    bool done = read_all(path, NULL, &error);
    if (!done) assert_non_null(strstr(error.message, path));
    return done;
}

static void test_damage_anywhere(void **state) {
    (void)state;
    static const int encodings[] = {PLAIN, DELTA_PREFIXES, RLE_DICTIONARY};
    for (int i = 0; i < 6; i++) {
        Error error;
        Bytes file = {0};
        ParquetWriter w = {.version2 = i & 1, .repetition = OPTIONAL, .codec = i & 1 ? SNAPPY : 0};
        assert_done(file_read(write_one(w, encodings[i / 2]), 10000, &file, &error), error);
        assert_true(survives(&file));
        for (size_t size = 0; size < file.size; size++)
            assert_false(survives(&(Bytes){.data = file.data, .size = size}));
        for (size_t bit = 0; bit < file.size * 8; bit += i ? 9 : 1) { /* all, in the first file */
            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            survives(&file);
            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t at = 0; at + 1 < file.size; at++) { /* a byte that is missing */
            Bytes shorter = {0};
            put(&shorter, file.data, at);
            put(&shorter, file.data + at + 1, file.size - at - 1);
            survives(&shorter);
            bytes_free(&shorter);
        }
        bytes_free(&file);
    }
}

static void test_memory_runs_out(void **state) {
    (void)state;
    Error error;
    const char *path = write_one((ParquetWriter){.repetition = OPTIONAL}, RLE_DICTIONARY);
    for (int64_t call = 1;; call++) {
        Piece piece;
        ReadResult result = READ_FAILED;
        faults_arm(FAULTS_MEMORY, FAULT_ONCE, call);
        Reader *reader = reader_open(&path, 1, &(ReaderSettings){0}, &error);
        while (reader && (result = reader_next(reader, &piece, &error)) == READ_PIECE) continue;
        reader_free(reader);
        if (!faults_disarm()) {
            assert_int_equal(result, READ_END);
            assert_true(call > 5);
            return;
        }
        if (result == READ_FAILED) assert_non_null(strstr(error.message, "memory"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way_of_writing),
        cmocka_unit_test(test_dictionary_then_plain),
        cmocka_unit_test(test_long_differences),
        cmocka_unit_test(test_fixed_length),
        cmocka_unit_test(test_many_row_groups),
        cmocka_unit_test(test_stopping_early),
        cmocka_unit_test(test_columns_that_hold_no_documents),
        cmocka_unit_test(test_what_is_not_supported),
        cmocka_unit_test(test_numbers_that_do_not_fit),
        cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_what_is_no_parquet),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_damage_anywhere),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
