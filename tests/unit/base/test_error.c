#include "support.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void test_messages(void **state) {
    (void)state;
    Error error;
    assert_false(fail(&error, "%s is %d; use 1", "x", 2));
    assert_string_equal(error.message, "x is 2; use 1");
    assert_false(fail_within(&error, "config.json"));
    assert_string_equal(error.message, "config.json: x is 2; use 1");
    errno = ENOENT;
    assert_false(fail_errno(&error, "cannot open %s", "y"));
    assert_string_equal(error.message, "cannot open y: No such file or directory");
    assert_false(fail_memory(&error, 12));
    assert_non_null(strstr(error.message, "12 bytes"));
}

static void test_long_messages_are_cut(void **state) {
    (void)state;
    Error error;
    char path[4000];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = 0;
    fail(&error, "%s", path);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    errno = ENOENT;
    fail_errno(&error, "%s", path);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    fail_within(&error, "%s", path);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
