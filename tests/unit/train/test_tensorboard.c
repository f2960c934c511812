#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "faults.h"
#include "support.h"
#include "train/tensorboard.h"

/* Creates test_directory()/name. */
static const char *folder(const char *name) {
    const char *path = test_path(name);
    Error error;
    assert_done(directory_create(path, &error), error);
    return path;
}

/* The bytes of the only event file of a directory. */
static Bytes event_file(const char *path) {
    Bytes bytes = {0};
    Error error;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strncmp(entry->d_name, "events.out.tfevents.", 20) != 0) continue;
        char *file = path_join(path, entry->d_name, &error);
        assert_non_null(file);
        assert_int_equal(bytes.size, 0);
        assert_done(file_read(file, 1 << 20, &bytes, &error), error);
        free(file);
    }
    closedir(directory);
    return bytes;
}

/* Made by the tensorboard package (2.21): its Event protobufs through its RecordWriter. */
static const uint8_t golden[] = {
    0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa3, 0x7f, 0x4b, 0x22, 0x09, 0x00, 0x00,
    0x10, 0x40, 0xfc, 0x54, 0xd9, 0x41, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45,
    0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32, 0x33, 0x8d, 0x2f, 0xe9, 0x20, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x29, 0xed, 0xa9, 0x50, 0x09, 0x00, 0x00, 0x60, 0x40, 0xfc, 0x54, 0xd9,
    0x41, 0x10, 0x01, 0x2a, 0x13, 0x0a, 0x11, 0x0a, 0x0a, 0x74, 0x72, 0x61, 0x69, 0x6e, 0x2f,
    0x6c, 0x6f, 0x73, 0x73, 0x15, 0x00, 0x00, 0x60, 0x40, 0xf3, 0x80, 0x67, 0x1a, 0x19, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x8b, 0xf1, 0x08, 0x28, 0x09, 0x00, 0x00, 0xa0, 0x40,
    0xfc, 0x54, 0xd9, 0x41, 0x10, 0xac, 0x02, 0x2a, 0x0b, 0x0a, 0x09, 0x0a, 0x02, 0x6c, 0x72,
    0x15, 0x6f, 0x12, 0x83, 0x3a, 0xd4, 0x3a, 0x5d, 0x8b,
};

static void scalars_give_the_bytes_that_tensorboard_writes(void **state) {
    (void)state;
    const char *path = folder("golden");
    TensorBoard board;
    Error error;
    assert_done(tensorboard_open(&board, path, 1700000000.25, &error), error);
    tensorboard_scalar(&board, 1700000001.5, 1, "train/loss", 3.5);
    tensorboard_scalar(&board, 1700000002.5, 300, "lr", 1e-3);
    tensorboard_close(&board);
    Bytes bytes = event_file(path);
    assert_int_equal(bytes.size, sizeof golden);
    assert_memory_equal(bytes.data, golden, sizeof golden);
    bytes_free(&bytes);
}

static void many_scalars_flow_through_the_buffer(void **state) {
    (void)state;
    const char *path = folder("many");
    char tag[400];
    memset(tag, 't', sizeof tag);
    tag[sizeof tag - 1] = 0;
    TensorBoard board;
    Error error;
    assert_done(tensorboard_open(&board, path, 1700000000, &error), error);
    for (int i = 0; i < 1000; i++) tensorboard_scalar(&board, 1700000000, -1, tag, i);
    tensorboard_close(&board);
    Bytes bytes = event_file(path);
    int records = 0;
    size_t place = 0;
    for (; place < bytes.size; records++) {
        uint64_t length;
        memcpy(&length, bytes.data + place, sizeof length);
        assert_true(length < 300);
        place += length + 16;
    }
    assert_int_equal(place, bytes.size);
    assert_int_equal(records, 1001);
    bytes_free(&bytes);
}

static void nothing_is_lost_but_the_scalars_of_a_failed_write(void **state) {
    (void)state;
    const char *path = folder("full");
    TensorBoard board;
    Error error;
    assert_done(tensorboard_open(&board, path, 1700000000.25, &error), error);
    board.warned = true;
    int file = board.file;
    tensorboard_scalar(&board, 1, 2, "lost", 3);
    board.file = open("/dev/full", O_WRONLY);
    tensorboard_flush(&board);
    close(board.file);
    board.file = file;
    tensorboard_scalar(&board, 1700000001.5, 1, "train/loss", 3.5);
    tensorboard_scalar(&board, 1700000002.5, 300, "lr", 1e-3);
    tensorboard_close(&board);
    Bytes bytes = event_file(path);
    assert_int_equal(bytes.size, sizeof golden);
    assert_memory_equal(bytes.data, golden, sizeof golden);
    bytes_free(&bytes);
}

static void failures_to_open_are_errors(void **state) {
    (void)state;
    TensorBoard board;
    Error error;
    assert_fails_with(tensorboard_open(&board, test_path("absent"), 1, &error), error, "absent");
    const char *path = folder("memory");
    faults_arm(FAULTS_MEMORY, FAULT_ONCE, 1);
    bool done = tensorboard_open(&board, path, 1, &error);
    assert_true(faults_disarm());
    assert_false(done);
}

int main(void) {
    test_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_give_the_bytes_that_tensorboard_writes),
        cmocka_unit_test(many_scalars_flow_through_the_buffer),
        cmocka_unit_test(nothing_is_lost_but_the_scalars_of_a_failed_write),
        cmocka_unit_test(failures_to_open_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
