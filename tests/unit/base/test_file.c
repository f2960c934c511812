/* Files, and above all that a write which fails at any call leaves the old file whole. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "faults.h"

static void expect_content(const char *path, const char *content) {
    Error error;
    Bytes bytes = {0};
    assert_done(file_read(path, 1 << 20, &bytes, &error), error);
    assert_string_equal((const char *)bytes.data, content);
    bytes_free(&bytes);
}

static bool is_content(const char *path, const char *content) {
    Error error;
    Bytes bytes = {0};
    bool same = file_read(path, 1 << 20, &bytes, &error) && !strcmp((char *)bytes.data, content);
    bytes_free(&bytes);
    return same;
}

static void test_read(void **state) {
    (void)state;
    Error error;
    Bytes bytes = {0};
    const char *path = test_path("read");
    assert_done(file_write(path, "a\0b", 3, &error), error);
    assert_done(file_read(path, 3, &bytes, &error), error);
    assert_int_equal(bytes.size, 3);
    assert_memory_equal(bytes.data, "a\0b", 4);
    assert_fails_with(file_read(path, 2, &bytes, &error), error, "larger than the 2 bytes");
    assert_fails_with(file_read(test_path("none"), 2, &bytes, &error), error, "No such file");
    assert_fails_with(file_read(test_directory(), 2, &bytes, &error), error, test_directory());
    assert_done(file_write(path, "", 0, &error), error);
    assert_done(file_read(path, 0, &bytes, &error), error);
    assert_int_equal(bytes.size, 0);
    bytes_free(&bytes);
}

static void test_map(void **state) {
    (void)state;
    Error error;
    FileMap map;
    const char *path = test_path("map");
    assert_done(file_write(path, "mapped", 6, &error), error);
    assert_done(file_map(&map, path, &error), error);
    assert_int_equal(map.size, 6);
    assert_memory_equal(map.data, "mapped", 6);
    file_unmap(&map);
    assert_null(map.data);
    assert_done(file_write(path, "", 0, &error), error);
    assert_done(file_map(&map, path, &error), error);
    assert_true(map.data == NULL && map.size == 0);
    file_unmap(&map);
    assert_fails_with(file_map(&map, test_directory(), &error), error, "not a regular file");
    assert_fails_with(file_map(&map, test_path("none"), &error), error, "No such file");
}

static void test_digest(void **state) {
    (void)state;
    static const char *const abc =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    Error error;
    char digest[SHA256_TEXT];
    const char *path = test_path("digest");
    sha256_bytes("abc", 3, digest); /* FIPS 180-2, appendix B.1 */
    assert_string_equal(digest, abc);
    FileWriter *writer = file_writer_open(path, &error);
    assert_done(writer != NULL, error);
    assert_done(file_writer_write(writer, "a", 1, &error), error);
    assert_done(file_writer_write(writer, "bc", 2, &error), error);
    assert_done(file_writer_commit(writer, digest, &error), error);
    assert_string_equal(digest, abc);
    writer = file_writer_open(path, &error);
    assert_done(file_writer_write(writer, "xxc", 3, &error), error);
    assert_done(file_writer_overwrite(writer, 0, "ab", 2, &error), error);
    assert_done(file_writer_commit(writer, digest, &error), error);
    assert_string_equal(digest, abc);
    expect_content(path, "abc");
    assert_done(sha256_file(path, digest, &error), error);
    assert_string_equal(digest, abc);
    assert_fails_with(sha256_file(test_path("none"), digest, &error), error, "No such file");
}

static void test_discard(void **state) {
    (void)state;
    Error error;
    const char *path = test_path("discard");
    assert_done(file_write(path, "old", 3, &error), error);
    FileWriter *writer = file_writer_open(path, &error);
    assert_done(file_writer_write(writer, "new", 3, &error), error);
    expect_content(path, "old"); /* nothing is seen before the commit */
    file_writer_discard(writer);
    file_writer_discard(NULL);
    expect_content(path, "old");
    assert_false(path_exists(test_path("discard.tmp")));
}

/* The writer's whole life: text, an overwritten header, a digest. */
static bool write_new(const char *path, Error *error) {
    char digest[SHA256_TEXT];
    FileWriter *writer = file_writer_open(path, error);
    if (!writer) return false;
    if (!file_writer_write(writer, "xxx-new", 7, error) ||
        !file_writer_overwrite(writer, 0, "all", 3, error)) {
        file_writer_discard(writer);
        return false;
    }
    return file_writer_commit(writer, digest, error);
}

static void test_every_failure_keeps_old_or_new(void **state) {
    (void)state;
    const char *path = test_path("faults");
    int failures = 0;
    for (FaultEffect effect = FAULT_ONCE; effect <= FAULT_LASTING; effect++)
        for (int64_t call = 1;; call++) {
            Error error = {{0}};
            assert_done(file_write(path, "old", 3, &error), error);
            faults_arm(FAULTS_ALL, effect, call);
            bool done = write_new(path, &error);
            bool reached = faults_disarm();
            /* When only the directory's fsync failed, the new file is there but not known
             * durable. */
            assert_true(done ? is_content(path, "all-new")
                             : is_content(path, "old") || is_content(path, "all-new"));
            assert_true(done || *error.message);
            assert_false(path_exists(test_path("faults.tmp")));
            failures += !done;
            if (!reached) break;
        }
    assert_in_range(failures, 10, 100);
}

static void test_kill_at_any_call_keeps_old_or_new(void **state) {
    (void)state;
    const char *path = test_path("kill");
    for (int64_t call = 1;; call++) {
        Error error;
        assert_done(file_write(path, "old", 3, &error), error);
        pid_t child = fork();
        if (child == 0) {
            faults_arm(FAULTS_ALL, FAULT_KILL, call);
            _exit(write_new(path, &error) ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0) break;
        assert_int_equal(WEXITSTATUS(status), FAULT_KILL_STATUS);
        assert_true(is_content(path, "old") || is_content(path, "all-new"));
    }
    expect_content(path, "all-new");
}

static void test_unwritable(void **state) {
    (void)state;
    Error error;
    assert_fails_with(file_write(test_path("no/such/place"), "x", 1, &error), error,
                      "no/such/place");
    assert_done(directory_create(test_path("taken"), &error), error);
    assert_fails_with(file_write(test_path("taken"), "x", 1, &error), error, "cannot rename");
    assert_false(path_exists(test_path("taken.tmp")));
}

static void test_directories(void **state) {
    (void)state;
    Error error;
    assert_done(directory_create(test_path("a/b/c"), &error), error);
    assert_done(directory_create(test_path("a/b/c/"), &error), error);
    assert_true(path_is_directory(test_path("a/b/c")));
    assert_done(file_write(test_path("a/b/file"), "x", 1, &error), error);
    assert_false(path_is_directory(test_path("a/b/file")));
    assert_fails_with(directory_create(test_path("a/b/file"), &error), error, "not a directory");
    assert_fails_with(directory_create(test_path("a/b/file/d"), &error), error, "a/b/file");
    assert_done(directory_sync(test_path("a"), &error), error);
    assert_fails_with(directory_sync(test_path("none"), &error), error, "none");
    assert_int_equal(symlink("/etc", test_path("a/link")), 0);
    assert_done(directory_remove(test_path("a"), &error), error);
    assert_false(path_exists(test_path("a")));
    assert_true(path_is_directory("/etc")); /* the link went, not what it names */
    assert_done(directory_remove(test_path("a"), &error), error);
}

static void test_join(void **state) {
    (void)state;
    Error error;
    char *path = path_join("runs/x", "config.yaml", &error);
    assert_string_equal(path, "runs/x/config.yaml");
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_discard),
        cmocka_unit_test(test_every_failure_keeps_old_or_new),
        cmocka_unit_test(test_kill_at_any_call_keeps_old_or_new),
        cmocka_unit_test(test_unwritable),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
