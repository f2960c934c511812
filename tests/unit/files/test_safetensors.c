#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "files/safetensors.h"
#include "support.h"

static const float weights[] = {1, 2, 3, 4, 5, 6};
static const uint8_t codes[] = {7, 8, 9};

static Tensor make(char *name, TensorType type, int64_t rows, int64_t columns, const void *data) {
    return (Tensor){.name = name,
                    .type = type,
                    .rank = 2,
                    .shape = {rows, columns},
                    .data = data,
                    .bytes = (size_t)(rows * columns) * tensor_type_size(type)};
}

/* Copies from `source`, or fails without one. */
static bool read_from(const Tensor *tensor, size_t offset, void *out, size_t bytes, Error *error) {
    if (offset + bytes > tensor->bytes) return fail(error, "read beyond the end");
    if (!tensor->source) return fail(error, "the device is lost");
    memcpy(out, (const uint8_t *)tensor->source + offset, bytes);
    return true;
}

static void a_source_gives_the_same_file_as_memory(void **state) {
    (void)state;
    enum { ROWS = 3, COLUMNS = 3 << 20 }; /* more than is read at a time, and not a multiple */
    uint8_t *bytes = test_malloc(ROWS * COLUMNS);
    for (size_t i = 0; i < ROWS * COLUMNS; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    Tensor tensors[] = {make((char[]){"large"}, TENSOR_U8, ROWS, COLUMNS, bytes),
                        make((char[]){"weights"}, TENSOR_F32, 2, 3, weights)};
    char from_memory[SHA256_TEXT], from_source[SHA256_TEXT];
    const char *path = test_path("source.safetensors");
    Error error;
    assert_done(safetensors_write(path, tensors, 2, NULL, from_memory, &error), error);
    for (int i = 0; i < 2; i++) {
        tensors[i].source = tensors[i].data;
        tensors[i].data = NULL;
        tensors[i].read = read_from;
    }
    assert_done(safetensors_write(path, tensors, 2, NULL, from_source, &error), error);
    assert_string_equal(from_memory, from_source);

    tensors[1].source = NULL; /* fails half way: the file stays as it was */
    assert_fails_with(safetensors_write(path, tensors, 2, NULL, NULL, &error), error,
                      "the device is lost");
    assert_done(sha256_file(path, from_source, &error), error);
    assert_string_equal(from_memory, from_source);
    test_free(bytes);
}

static void write_then_read_gives_the_same(void **state) {
    (void)state;
    Tensor tensors[] = {make((char[]){"codes \"\xc3\xa9\""}, TENSOR_U8, 1, 3, codes),
                        make((char[]){"weights"}, TENSOR_F32, 2, 3, weights),
                        make((char[]){"empty"}, TENSOR_BF16, 0, 5, NULL)};
    const char *metadata[] = {"format", "pt", NULL};
    const char *path = test_path("same.safetensors");
    char written[SHA256_TEXT], read_back[SHA256_TEXT];
    Error error;
    assert_done(safetensors_write(path, tensors, 3, metadata, written, &error), error);
    assert_done(sha256_file(path, read_back, &error), error);
    assert_string_equal(written, read_back);

    Safetensors file;
    assert_done(safetensors_open(&file, path, &error), error);
    assert_int_equal(file.count, 3);
    for (int i = 0; i < 3; i++) {
        const Tensor *tensor = safetensors_find(&file, tensors[i].name);
        assert_non_null(tensor);
        assert_int_equal(tensor->type, tensors[i].type);
        assert_int_equal(tensor->rank, 2);
        assert_memory_equal(tensor->shape, tensors[i].shape, 2 * sizeof(int64_t));
        assert_int_equal(tensor->bytes, tensors[i].bytes);
        if (tensor->bytes) assert_memory_equal(tensor->data, tensors[i].data, tensor->bytes);
    }
    assert_int_equal(((const uint8_t *)file.tensors[0].data - file.map.data) % 8, 0);
    assert_null(safetensors_find(&file, "absent"));
    safetensors_close(&file);
}

/* Opens every file of a folder; returns how many there were. */
static int open_all(const char *folder, bool good) {
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!strstr(entry->d_name, ".safetensors")) continue;
        Error error = {""};
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        Safetensors file;
        bool done = safetensors_open(&file, path, &error);
        if (done) safetensors_close(&file);
        if (done != good) fail_msg("%s: %s", entry->d_name, done ? "was accepted" : error.message);
        if (!done && !strstr(error.message, entry->d_name))
            fail_msg("no name in: %s", error.message);
        count++;
    }
    closedir(directory);
    return count;
}

static void shared_files(void **state) {
    (void)state;
    if (!shared_data("safetensors/good")) skip();
    assert_int_equal(open_all(shared_data("safetensors/good"), true), 8);
    assert_int_equal(open_all(shared_data("safetensors/malformed"), false), 22);
}

/* A file with this header, and `data_bytes` zeros. */
static const char *with_header(const char *header, size_t data_bytes) {
    const char *path = test_path("header.safetensors");
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    uint64_t length = strlen(header);
    for (int i = 0; i < 8; i++) fputc((int)(length >> (8 * i) & 255), out);
    fputs(header, out);
    for (size_t i = 0; i < data_bytes; i++) fputc(0, out);
    assert_int_equal(fclose(out), 0);
    return path;
}

static void malformed_headers_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[8,8]}}",
         "duplicate"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,8]}}",
         "do not match"},
        {"{\"a\":{\"dtype\":\"U64\",\"shape\":[2305843009213693953],\"data_offsets\":[0,8]}}",
         "do not match"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,8],\"data_offsets\":[0,8]}}",
         "do not match"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,8],\"data_offsets\":[0,8]}}",
         "9 dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}", "do not lie in"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,0]}}", "do not lie in"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8,8]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":8,\"data_offsets\":[0,8]}}", "shape"},
        {"{\"a\":[]}", "dtype"},
        {"{}", "belong to no tensor"},
        {"{\"__metadata__\":[]}", "__metadata__"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[5,8]}}",
         "hole"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Safetensors file;
        Error error;
        assert_fails_with(safetensors_open(&file, with_header(cases[i].header, 8), &error), error,
                          cases[i].message);
    }
}

static void rank_eight_and_empty_tensors_are_read(void **state) {
    (void)state;
    Safetensors file;
    Error error;
    const char *header =
        "{\"z\":{\"dtype\":\"U8\",\"shape\":[1,1,1,2,1,2,1,2],\"data_offsets\":[0,8]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[0,0]}}";
    assert_done(safetensors_open(&file, with_header(header, 8), &error), error);
    assert_int_equal(file.count, 3);
    assert_string_equal(file.tensors[0].name, "a");
    assert_int_equal(file.tensors[1].rank, 8);
    safetensors_close(&file);
}

static void wrong_tensors_are_not_written(void **state) {
    (void)state;
    Error error;
    const char *path = test_path("wrong.safetensors");
    Tensor twice[] = {make((char[]){"a"}, TENSOR_U8, 1, 3, codes),
                      make((char[]){"a"}, TENSOR_U8, 1, 3, codes)};
    assert_fails_with(safetensors_write(path, twice, 2, NULL, NULL, &error), error, "taken");
    Tensor reserved = make((char[]){"__metadata__"}, TENSOR_U8, 1, 3, codes);
    assert_fails_with(safetensors_write(path, &reserved, 1, NULL, NULL, &error), error, "taken");
    Tensor latin = make((char[]){"\xe9"}, TENSOR_U8, 1, 3, codes);
    assert_fails_with(safetensors_write(path, &latin, 1, NULL, NULL, &error), error, "UTF-8");
    Tensor shorter = make((char[]){"a"}, TENSOR_U8, 1, 3, codes);
    shorter.bytes = 2;
    assert_fails_with(safetensors_write(path, &shorter, 1, NULL, NULL, &error), error, "match");
    assert_false(path_exists(path));
}

static void fail_every_call(FaultEffect effect) {
    const char *path = test_path("faults.safetensors");
    Tensor old = make((char[]){"w"}, TENSOR_F32, 2, 3, weights);
    Tensor new = make((char[]){"w"}, TENSOR_U8, 1, 3, codes);
    Error error;
    int64_t call = 1;
    for (;; call++) {
        assert_done(safetensors_write(path, &old, 1, NULL, NULL, &error), error);
        faults_arm(FAULTS_ALL, effect, call);
        bool done = safetensors_write(path, &new, 1, NULL, NULL, &error);
        bool reached = faults_disarm();
        assert_int_equal(done, !reached);
        Safetensors file;
        assert_done(safetensors_open(&file, path, &error), error); /* the old one or the new one */
        if (done) assert_int_equal(file.tensors[0].type, TENSOR_U8);
        safetensors_close(&file);
        if (!reached) break;
    }
    assert_true(call > 10);
}

static void every_failure_leaves_the_old_file(void **state) {
    (void)state;
    fail_every_call(FAULT_ONCE);
    fail_every_call(FAULT_LASTING);
}

static void every_failure_to_read_is_an_error(void **state) {
    (void)state;
    const char *path = test_path("read.safetensors");
    Tensor tensor = make((char[]){"w"}, TENSOR_F32, 2, 3, weights);
    Error error;
    assert_done(safetensors_write(path, &tensor, 1, NULL, NULL, &error), error);
    int64_t call = 1;
    for (;; call++) {
        Safetensors file;
        faults_arm(FAULTS_ALL, FAULT_ONCE, call);
        bool done = safetensors_open(&file, path, &error);
        bool reached = faults_disarm();
        assert_int_equal(done, !reached);
        if (done) safetensors_close(&file);
        if (!reached) break;
    }
    assert_true(call > 5);
}

int main(void) {
    test_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_then_read_gives_the_same),
        cmocka_unit_test(a_source_gives_the_same_file_as_memory),
        cmocka_unit_test(shared_files),
        cmocka_unit_test(malformed_headers_are_refused),
        cmocka_unit_test(rank_eight_and_empty_tensors_are_read),
        cmocka_unit_test(wrong_tensors_are_not_written),
        cmocka_unit_test(every_failure_leaves_the_old_file),
        cmocka_unit_test(every_failure_to_read_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
