#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "faults.h"

static void test_allocate(void **state) {
    (void)state;
    Error error;
    uint8_t *memory = allocate(1000, 3, &error);
    assert_non_null(memory);
    for (int i = 0; i < 3000; i++) assert_int_equal(memory[i], 0);
    free(memory);
    memory = allocate(0, 8, &error);
    assert_non_null(memory);
    free(memory);
    assert_fails_with(allocate(SIZE_MAX / 2, 3, &error), error, "elements of 3 bytes");
}

static void test_reserve(void **state) {
    (void)state;
    Error error;
    uint32_t *array = NULL;
    size_t capacity = 0, growths = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        size_t before = capacity;
        assert_done(reserve(&array, &capacity, i + 1, sizeof *array, &error), error);
        growths += capacity != before;
        array[i] = i;
    }
    for (uint32_t i = 0; i < 100000; i++) assert_int_equal(array[i], i);
    assert_in_range(growths, 1, 40); /* geometric */
    uint32_t *same = array;
    size_t kept = capacity;
    assert_fails_with(reserve(&array, &capacity, SIZE_MAX, sizeof *array, &error), error, "memory");
    assert_ptr_equal(array, same);
    assert_int_equal(capacity, kept);
    free(array);
}

static void test_bytes(void **state) {
    (void)state;
    Error error;
    Bytes bytes = {0};
    assert_done(bytes_append(&bytes, NULL, 0, &error), error);
    assert_done(bytes_append(&bytes, "a\0b", 3, &error), error);
    assert_done(bytes_format(&bytes, &error, "%d-%s", 17, "x"), error);
    assert_int_equal(bytes.size, 7);
    assert_memory_equal(bytes.data, "a\0b17-x", 7);
    assert_fails_with(bytes_append(&bytes, "", SIZE_MAX - 2, &error), error, "memory");
    assert_int_equal(bytes.size, 7);
    bytes_free(&bytes);
    assert_null(bytes.data);
    bytes_free(&bytes);
}

/* Whatever allocation fails, what was there is kept, and the message says so. */
static void test_exhausted(void **state) {
    (void)state;
    Error error;
    Bytes bytes = {0};
    assert_done(bytes_append(&bytes, "kept", 4, &error), error);
    char *large = calloc(1, 100000);
    faults_arm(FAULTS_MEMORY, FAULT_LASTING, 1);
    assert_fails_with(bytes_append(&bytes, large, 100000, &error), error, "out of memory");
    assert_fails_with(bytes_format(&bytes, &error, "%9000d", 1), error, "out of memory");
    assert_fails_with(allocate(10, 1, &error), error, "10 bytes");
    assert_fails_with(copy_string("text", &error), error, "5 bytes");
    assert_true(faults_disarm());
    assert_int_equal(bytes.size, 4);
    assert_memory_equal(bytes.data, "kept", 4);
    bytes_free(&bytes);
    free(large);
}

static void test_copy_string(void **state) {
    (void)state;
    Error error;
    char *copy = copy_string("text", &error);
    assert_string_equal(copy, "text");
    free(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocate),    cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_exhausted),
        cmocka_unit_test(test_copy_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
