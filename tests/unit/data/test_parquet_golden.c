/* Parquet files that other programs wrote, against what pyarrow reads from them: tests/golden/parquet. */
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/reader.h"

static const char golden[] = HEARTH_SOURCE "/tests/golden/parquet/";

/* Lines of columns.txt: in all, and of the files beside it. */
enum { COLUMNS = 166, OUR_COLUMNS = 23 };

/* Appends each document's size, in eight bytes, and bytes; counts them. */
static bool read_documents(const char *path, const char *field, Bytes *all, int64_t *count,
                           Error *error) {
    Piece piece;
    ReadResult result = READ_FAILED;
    Reader *reader = reader_open(&path, 1, &(ReaderSettings){.field = field}, error);
    for (*count = 0; reader && (result = reader_next(reader, &piece, error)) == READ_PIECE;) {
        uint64_t size = piece.size;
        assert_true(piece.begins); /* none is as long as READER_PIECE */
        assert_true(bytes_append(all, &size, sizeof size, error));
        assert_true(bytes_append(all, piece.text, piece.size, error));
        ++*count;
    }
    if (result == READ_END) assert_int_equal(reader_consumed(reader), reader_total(reader));
    reader_free(reader);
    return result == READ_END;
}

static bool contains(const Error *error, const char *text) {
    return strstr(error->message, text) != NULL;
}

/* One line of columns.txt: what is expected of a file's column. */
static void check_column(const char *path, const char *column, const char *expected) {
    Error error;
    Bytes all = {0};
    int64_t count;
    char found[200], digest[SHA256_TEXT];
    bool done = read_documents(path, column, &all, &count, &error);
    if (!strncmp(expected, "strings", 7) && done) {
        sha256_bytes(all.data, all.size, digest);
        snprintf(found, sizeof found, "strings %lld %s", (long long)count, digest);
        if (strcmp(found, expected)) fail_msg("%s, %s: %s", path, column, found);
    } else {
        snprintf(found, sizeof found, "holds %s,", expected + strcspn(expected, " ") + 1);
        bool refused = !strcmp(expected, "fails") ||
                       (!strcmp(expected, "list") && contains(&error, "is a list")) ||
                       (!strcmp(expected, "nulls") && contains(&error, "nothing but nulls")) ||
                       contains(&error, "BROTLI, which is not supported") ||
                       contains(&error, found);
        if (done) fail_msg("%s, %s: is read", path, column);
        if (!refused || !contains(&error, path) || !contains(&error, column))
            fail_msg("%s, %s: %s", path, column, error.message);
    }
    bytes_free(&all);
}

static void test_columns(void **state) {
    (void)state;
    Error error;
    Bytes text = {0};
    int checked = 0, checked_ours = 0, missing = 0;
    assert_done(
        file_read(HEARTH_SOURCE "/tests/golden/parquet/columns.txt", 1 << 20, &text, &error),
        error);
    for (char *rest, *line = strtok_r((char *)text.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *fields, path[4096];
        const char *name = strtok_r(line, "\t", &fields), *column = strtok_r(NULL, "\t", &fields);
        const char *shared = "";
        bool ours = !strchr(name, '/'); /* shared files are in folders */
        snprintf(path, sizeof path, "parquet/%s", name);
        if (!ours && !(shared = shared_data(path))) {
            missing++;
            continue;
        }
        snprintf(path, sizeof path, "%s%s", ours ? golden : shared, ours ? name : "");
        check_column(path, column, fields);
        checked++, checked_ours += ours;
    }
    bytes_free(&text);
    assert_int_equal(checked_ours, OUR_COLUMNS);
    assert_int_equal(checked + missing, COLUMNS);
    if (missing) print_message("%d columns of ../shared/data/parquet are not here\n", missing);
}

static void test_encrypted(void **state) {
    (void)state;
    Error error;
    Bytes all = {0};
    int64_t count;
    const char *path = shared_data("parquet/bad/uniform_encryption.parquet.encrypted");
    if (!path) skip();
    assert_fails_with(read_documents(path, NULL, &all, &count, &error), error, "Parquet");
    assert_int_equal(symlink(path, test_path("encrypted.parquet")), 0);
    assert_fails_with(read_documents(test_path("encrypted.parquet"), NULL, &all, &count, &error),
                      error, "encrypted.parquet: encrypted, which is not supported");
    bytes_free(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_encrypted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
