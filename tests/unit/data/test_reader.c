/* The reader over every kind of input, good and bad. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "data/reader.h"

static void put(const char *name, const void *data, size_t size) {
    Error error;
    assert_done(file_write(test_path(name), data, size, &error), error);
}

static void put_text(const char *name, const char *text) {
    put(name, text, strlen(text));
}

static void put_gzip(const char *name, const char *text) {
    gzFile file = gzopen(test_path(name), "wb");
    gzwrite(file, text, (unsigned)strlen(text));
    gzclose(file);
}

static void put_zstd(const char *name, const char *text) {
    char packed[1000];
    put(name, packed, ZSTD_compress(packed, sizeof packed, text, strlen(text), 3));
}

static void cut_last(const char *name, long bytes) {
    struct stat status;
    assert_int_equal(stat(test_path(name), &status), 0);
    assert_int_equal(truncate(test_path(name), status.st_size - bytes), 0);
}

static const ReaderSettings plain = {0};

/* All documents, each followed by '|'; NULL on failure. */
static char *read_all(const char *const *inputs, int count, const ReaderSettings *settings,
                      Error *error) {
    static Bytes all;
    Piece piece;
    ReadResult result = READ_FAILED;
    all.size = 0;
    Reader *reader = reader_open(inputs, count, settings, error);
    while (reader && (result = reader_next(reader, &piece, error)) == READ_PIECE) {
        assert_in_range(piece.size, 1, READER_PIECE);
        if (piece.begins && all.size) assert_true(bytes_append(&all, "|", 1, error));
        assert_true(piece.begins || all.size);
        assert_true(bytes_append(&all, piece.text, piece.size, error));
    }
    if (result == READ_END && reader_total(reader))
        assert_int_equal(reader_consumed(reader), reader_total(reader));
    reader_free(reader);
    if (result != READ_END) return NULL;
    assert_true(bytes_append(&all, "|", 2, error));
    return (char *)all.data;
}

static void gives(const char *name, const ReaderSettings *settings, const char *expected) {
    Error error;
    const char *input = name[0] == '-' ? name : test_path(name);
    const char *all = read_all(&input, 1, settings, &error);
    assert_done(all, error);
    assert_string_equal(all, expected);
}

static void refuses(const char *name, const ReaderSettings *settings, const char *message) {
    Error error;
    const char *input = name[0] == '-' ? name : test_path(name);
    assert_fails_with(read_all(&input, 1, settings, &error), error, message);
}

static void test_text(void **state) {
    (void)state;
    put_text("a.txt", "one\n\ntwo\n");
    gives("a.txt", &plain, "one\n\ntwo\n|");
    gives("a.txt", &(ReaderSettings){.split_on = "\\n\\n"}, "one|two\n|");
    gives("a.txt", &(ReaderSettings){.split_on = "\n"}, "one|two|"); /* empty ones are skipped */
    gives("a.txt", &(ReaderSettings){.split_on = "absent"}, "one\n\ntwo\n|");
    put_text("s.txt", "<end><end>a<en<end>b<end");
    gives("s.txt", &(ReaderSettings){.split_on = "<end>"}, "a<en|b<end|");
    gives("s.txt", &(ReaderSettings){.split_on = "\\q"}, "<end><end>a<en<end>b<end|");
    refuses("s.txt", &(ReaderSettings){.split_on = ""}, "separator to split on is empty");
    char long_separator[300] = {0};
    memset(long_separator, 'x', 299);
    refuses("s.txt", &(ReaderSettings){.split_on = long_separator}, "longer than 256 bytes");
    put_text("noname", "{\"text\":\"x\"}\n");
    gives("noname", &plain, "{\"text\":\"x\"}\n|");
    gives("noname", &(ReaderSettings){.field = "text"}, "x|");
}

static void test_bytes_are_kept(void **state) {
    (void)state;
    Error error;
    static const char odd[] = "a\0b\xFF\xC3(\xED\xA0\x80\r\n";
    put("odd.txt", odd, sizeof odd);
    const char *input = test_path("odd.txt"), *all = read_all(&input, 1, &plain, &error);
    assert_done(all, error);
    assert_memory_equal(all, odd, sizeof odd);
    put("nul.txt", "a\0b\0\0c", 6);
    gives("nul.txt", &(ReaderSettings){.split_on = "\\0"}, "a|b|c|");
}

static void test_json_lines(void **state) {
    (void)state;
    put_text("a.jsonl",
             "\xEF\xBB\xBF{\"text\":\"one\"}\n\n  \r\n{\"text\":\"\"}\r\n{\"text\":\"t\\nwo\"}");
    gives("a.jsonl", &plain, "one|t\nwo|");
    gives("a.jsonl", &(ReaderSettings){.split_on = "n"}, "one|t\nwo|");
    refuses("a.jsonl", &(ReaderSettings){.field = "body"}, "a.jsonl:1: there is no field \"body\"");
    put_text("b.json", "{\"body\":\"x\"}\n{\"body\":\"y\"\n");
    refuses("b.json", &(ReaderSettings){.field = "body"}, "b.json:2: the line ends at column 12");
}

static void test_compressed(void **state) {
    (void)state;
    put_gzip("a.txt.gz", "packed text");
    gives("a.txt.gz", &plain, "packed text|");
    put_gzip("a.jsonl.gz", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
    gives("a.jsonl.gz", &plain, "one|two|");
    put_zstd("a.txt.zst", "more text");
    gives("a.txt.zst", &plain, "more text|");
    put_zstd("disguised.txt", "told by its bytes");
    gives("disguised.txt", &plain, "told by its bytes|");

    Error error; /* members joined end to end, as `cat a.gz b.gz` makes */
    Bytes joined = {0}, second = {0};
    put_gzip("second.gz", " and more");
    assert_true(file_read(test_path("a.txt.gz"), 1000, &joined, &error));
    assert_true(file_read(test_path("second.gz"), 1000, &second, &error));
    assert_true(bytes_append(&joined, second.data, second.size, &error));
    put("joined.gz", joined.data, joined.size);
    gives("joined.gz", &plain, "packed text and more|");
    assert_true(bytes_append(&joined, "junk", 4, &error));
    put("junk.gz", joined.data, joined.size);
    refuses("junk.gz", &plain, "junk.gz is damaged");
    bytes_free(&joined), bytes_free(&second);

    for (long cut = 1; cut < 20; cut++) {
        put_gzip("cut.txt.gz", "packed text");
        cut_last("cut.txt.gz", cut);
        refuses("cut.txt.gz", &plain, "cut.txt.gz is truncated");
    }
    put_zstd("cut.txt.zst", "more text, and more text, and more text");
    cut_last("cut.txt.zst", 3);
    refuses("cut.txt.zst", &plain, "cut.txt.zst is truncated");
    put_text("false.txt.gz", "not packed");
    refuses("false.txt.gz", &plain, "not compressed as its name says");
    put("bad.txt.zst", "\x28\xb5\x2f\xfd\x20\x04\x07\0\0text", 13); /* a block of no known type */
    refuses("bad.txt.zst", &plain, "bad.txt.zst is damaged");
}

static void test_directories_and_patterns(void **state) {
    (void)state;
    Error error;
    assert_done(directory_create(test_path("tree/b/c"), &error), error);
    assert_done(directory_create(test_path("tree/.hidden"), &error), error);
    put_text("tree/a.txt", "1");
    put_text("tree/b/c/x.jsonl", "{\"text\":\"2\"}");
    put_gzip("tree/b/z.txt.gz", "3");
    put_text("tree/c.txt", "4");
    put_text("tree/C.json", "{\"text\":\"0\"}"); /* byte order: capitals first */
    put_text("tree/picture.png", "no");
    put_text("tree/.secret.txt", "no");
    put_text("tree/.hidden/d.txt", "no");
    assert_int_equal(symlink(".", test_path("tree/b/loop")), 0);
    gives("tree", &plain, "0|1|2|3|4|");
    gives("tree/*.txt", &plain, "1|4|");
    gives("tree/[b]", &plain, "2|3|");
    put_text("tree/odd[1].txt", "5");
    gives("tree/odd[1].txt", &plain, "5|");
    const char *two[] = {test_path("tree/c.txt"), test_path("tree/b")};
    assert_string_equal(read_all(two, 2, &plain, &error), "4|2|3|");
    refuses("tree/*.pdf", &plain, "no file matches");
    assert_done(directory_create(test_path("bare"), &error), error);
    refuses("bare", &plain, "holds no .txt, .jsonl or .json");
    refuses("missing.txt", &plain, "missing.txt: No such file");
    assert_fails_with(reader_open(NULL, 0, &plain, &error), error, "no input is given");
}

static void test_which_inputs_have_documents(void **state) {
    (void)state;
    static const struct {
        const char *input;
        ReaderSettings settings;
        bool documents;
    } cases[] = {
        {"plain", {0}, false},
        {"plain/*.txt", {0}, false},
        {"plain", {.split_on = "\\n"}, true},
        {"plain", {.field = "text"}, false},
        {"plain/bare", {.field = "text"}, true},
        {"mixed", {0}, true},
        {"mixed/a.txt", {0}, false},
    };
    Error error;
    assert_done(directory_create(test_path("plain"), &error), error);
    assert_done(directory_create(test_path("mixed"), &error), error);
    put_text("plain/a.txt", "1");
    put_gzip("plain/b.txt.gz", "2");
    put_text("plain/bare", "3");
    put_text("mixed/a.txt", "1");
    put_text("mixed/b.jsonl", "{\"text\":\"2\"}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *input = test_path(cases[i].input);
        Reader *reader = reader_open(&input, 1, &cases[i].settings, &error);
        assert_done(reader != NULL, error);
        assert_int_equal(reader_has_documents(reader), cases[i].documents);
        reader_free(reader);
    }
}

static void test_empty_files(void **state) {
    (void)state;
    put_text("empty.txt", "");
    refuses("empty.txt", &plain, "empty.txt is empty");
    put_text("empty.jsonl", "");
    refuses("empty.jsonl", &plain, "empty.jsonl is empty");
}

static void test_standard_input(void **state) {
    (void)state;
    int saved = dup(STDIN_FILENO), ends[2];
    for (int i = 0; i < 2; i++) {
        static const char *const texts[] = {"from a pipe", "{\"text\":\"from a pipe\"}"};
        assert_int_equal(pipe(ends), 0);
        assert_true(write(ends[1], texts[i], strlen(texts[i])) > 0);
        close(ends[1]);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        gives("-", i ? &(ReaderSettings){.field = "text"} : &plain, "from a pipe|");
        refuses("-", &plain, "standard input is empty");
    }
    dup2(saved, STDIN_FILENO);
    close(saved);
}

static long peak_kilobytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Reads a file and checks that the pieces join to `period` repeated, in little memory. */
static int64_t read_periodic(const char *name, const char *period, int64_t *cut_at_space) {
    Error error;
    Piece piece;
    ReadResult result;
    int64_t at = 0, length = (int64_t)strlen(period);
    long before = peak_kilobytes();
    const char *input = test_path(name);
    Reader *reader = reader_open(&input, 1, &plain, &error);
    assert_done(reader, error);
    *cut_at_space = 0;
    while ((result = reader_next(reader, &piece, &error)) == READ_PIECE) {
        assert_int_equal(piece.begins, at == 0);
        *cut_at_space += piece.text[0] == ' ';
        for (size_t i = 0; i < piece.size; i++, at++)
            if (piece.text[i] != (uint8_t)period[at % length])
                fail_msg("byte %lld differs", (long long)at);
    }
    assert_int_equal(result, READ_END);
    reader_free(reader);
#ifndef __SANITIZE_ADDRESS__
    assert_true(peak_kilobytes() - before < 16 << 10);
#endif
    (void)before;
    return at;
}

static void write_periodic(const char *name, const char *period, int64_t bytes) {
    Bytes block = {0};
    Error error;
    while (block.size < 1 << 20) assert_true(bytes_append(&block, period, strlen(period), &error));
    FILE *file = fopen(test_path(name), "wb");
    for (int64_t done = 0; done < bytes; done += (int64_t)block.size)
        assert_int_equal(fwrite(block.data, 1, block.size, file), block.size);
    fclose(file);
    bytes_free(&block);
}

/* One line of any size; HEARTH_BIG_LINE=1 makes it 1 GB. */
static void test_one_long_line(void **state) {
    (void)state;
    int64_t spaces, bytes = getenv("HEARTH_BIG_LINE") ? INT64_C(1) << 30 : INT64_C(100) << 20;
    static const char words[] = "some words and caf\xC3\xA9s, ";
    write_periodic("long.txt", words, bytes);
    assert_true(read_periodic("long.txt", words, &spaces) >= bytes);
    assert_true(spaces >= bytes / READER_PIECE - 1);
    unlink(test_path("long.txt"));

    static const char solid[] = "\xE4\xB8\xAD\xE6\x96\x87"; /* no space: cut between characters */
    write_periodic("solid.txt", solid, 5 << 20);
    assert_true(read_periodic("solid.txt", solid, &spaces) >= 5 << 20);
    Error error;
    Piece piece;
    const char *input = test_path("solid.txt");
    Reader *reader = reader_open(&input, 1, &plain, &error);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(reader_next(reader, &piece, &error), READ_PIECE);
        assert_int_equal(piece.size % 3, 0);
    }
    reader_free(reader);
}

static void test_long_json_string(void **state) {
    (void)state;
    Bytes line = {0};
    Error error;
    assert_true(bytes_append(&line, "{\"text\":\"", 9, &error));
    for (int i = 0; i < 400000; i++) assert_true(bytes_append(&line, "word\\n ", 7, &error));
    assert_true(bytes_append(&line, "\"}\n", 3, &error));
    put("long.jsonl", line.data, line.size);
    const char *input = test_path("long.jsonl"), *all = read_all(&input, 1, &plain, &error);
    assert_done(all, error);
    assert_int_equal(strlen(all), 400000 * 6 + 1);
    bytes_free(&line);
}

/* A separator wherever it lies against the ends of pieces and windows. */
static void test_separator_at_any_place(void **state) {
    (void)state;
    Error error;
    uint8_t *text = test_malloc(3 << 20);
    for (int64_t shift = -6; shift <= 1; shift++) {
        memset(text, 'x', 3 << 20);
        int64_t places[] = {READER_PIECE + shift, 2 * READER_PIECE + shift};
        for (int i = 0; i < 2; i++) memcpy(text + places[i], "<end>", 5);
        put("separated.txt", text, 3 << 20);
        const char *input = test_path("separated.txt");
        Reader *reader = reader_open(&input, 1, &(ReaderSettings){.split_on = "<end>"}, &error);
        int64_t sizes[3] = {0}, document = -1;
        Piece piece;
        while (reader_next(reader, &piece, &error) == READ_PIECE) {
            document += piece.begins;
            sizes[document] += (int64_t)piece.size;
        }
        assert_int_equal(document, 2);
        assert_int_equal(sizes[0], places[0]);
        assert_int_equal(sizes[1], places[1] - places[0] - 5);
        reader_free(reader);
    }
    test_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_long_line), /* first: it measures peak memory */
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_bytes_are_kept),
        cmocka_unit_test(test_json_lines),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_directories_and_patterns),
        cmocka_unit_test(test_which_inputs_have_documents),
        cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_long_json_string),
        cmocka_unit_test(test_separator_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
