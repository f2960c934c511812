#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "faults.h"

static json_t *parse(const char *text, Error *error) {
    return json_read_bytes("in.json", text, strlen(text), error);
}

static void test_members(void **state) {
    (void)state;
    Error error;
    json_t *object =
        parse("{\"i\": -5, \"x\": 2.5, \"b\": true, \"s\": \"text\", \"n\": null}", &error);
    assert_done(object != NULL, error);
    int64_t integer;
    double number;
    bool truth;
    assert_done(json_get_integer(object, "i", -5, -5, &integer, &error), error);
    assert_true(integer == -5);
    assert_done(json_get_number(object, "x", &number, &error), error);
    assert_true(number == 2.5);
    assert_done(json_get_number(object, "i", &number, &error), error);
    assert_true(number == -5);
    assert_done(json_get_bool(object, "b", &truth, &error), error);
    assert_true(truth);
    assert_string_equal(json_get_string(object, "s", &error), "text");

    assert_fails_with(json_get_integer(object, "i", 0, 9, &integer, &error), error, "\"i\" is -5");
    assert_fails_with(json_get_integer(object, "x", 0, 9, &integer, &error), error, "whole number");
    assert_fails_with(json_get_integer(object, "z", 0, 9, &integer, &error), error,
                      "\"z\" is missing");
    assert_fails_with(json_get_number(object, "s", &number, &error), error,
                      "\"s\" is not a number");
    assert_fails_with(json_get_number(object, "z", &number, &error), error, "missing");
    assert_fails_with(json_get_bool(object, "i", &truth, &error), error, "neither true nor false");
    assert_fails_with(json_get_bool(object, "z", &truth, &error), error, "missing");
    assert_fails_with(json_get_string(object, "n", &error), error, "not a string");
    assert_fails_with(json_get_string(object, "z", &error), error, "missing");
    json_decref(object);
}

static void test_bad_text(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "{\"a\": }",
        "{\"a\": 1} x",
        "{\"a\": 1, \"a\": 2}",
        "{\"a\": 1e999}",
        "{\"a\": 99999999999999999999}",
        "{\"\xff\": 1}",
        "{\"a\": NaN}",
    };
    Error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails_with(parse(bad[i], &error), error, "in.json is not valid JSON");
    assert_fails_with(parse("[1]", &error), error, "does not hold a JSON object");
    enum { DEPTH = 100000 }; /* nesting must not exhaust the stack */
    char *deep = malloc(DEPTH);
    memset(deep, '[', DEPTH);
    assert_fails_with(json_read_bytes("deep", deep, DEPTH, &error), error,
                      "deep is not valid JSON");
    free(deep);
}

static void test_round_trip(void **state) {
    (void)state;
    Error error;
    const char *path = test_path("out.json");
    json_t *object = json_pack("{s:i, s:s, s:[f]}", "zeta", 1, "alpha", "\xc3\xa9", "list", 0.1);
    assert_done(json_write_file(path, object, &error), error);
    json_t *again = json_read_file(path, 1000, &error);
    assert_done(again != NULL, error);
    assert_true(json_equal(object, again));
    json_decref(again);
    Bytes text = {0};
    assert_done(file_read(path, 1000, &text, &error), error);
    const char *zeta = strstr((char *)text.data, "zeta");
    assert_true(zeta && zeta < strstr((char *)text.data, "alpha")); /* in the order they were set */
    assert_int_equal(text.data[text.size - 1], '\n');
    bytes_free(&text);
    assert_fails_with(json_read_file(path, 10, &error), error, "larger than the 10 bytes");
    assert_fails_with(json_read_file(test_path("none"), 10, &error), error, "No such file");
    json_decref(object);
}

/* Every allocation and file call fails in turn: an error, and the old file is whole. */
static void test_write_failures(void **state) {
    (void)state;
    const char *path = test_path("faults.json");
    Error error;
    json_t *old = json_pack("{s:i}", "old", 1),
           *new = json_pack("{s:i, s:[s, b]}", "new", 2, "l", "x", 1);
    for (int64_t call = 1;; call++) {
        assert_done(json_write_file(path, old, &error), error);
        faults_arm(FAULTS_ALL, FAULT_ONCE, call);
        bool done = json_write_file(path, new, &error);
        bool reached = faults_disarm();
        json_t *found = json_read_file(path, 1000, &error);
        assert_non_null(found);
        assert_true(json_equal(found, new) || (!done && json_equal(found, old)));
        json_decref(found);
        if (!reached) break;
    }
    json_decref(old);
    json_decref(new);
}

static void test_read_failures(void **state) {
    (void)state;
    Error error;
    const char *path = test_path("read.json");
    assert_done(file_write(path, "{\"a\": [1, \"two\", {}]}", 21, &error), error);
    for (int64_t call = 1;; call++) {
        faults_arm(FAULTS_ALL, FAULT_ONCE, call);
        json_t *found = json_read_file(path, 1000, &error);
        bool reached = faults_disarm();
        assert_true(reached ? !found : found != NULL);
        json_decref(found);
        if (!reached) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),       cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_write_failures),
        cmocka_unit_test(test_read_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
