#include "support.h"

#include <string.h>

#include "data/json_line.h"

static Bytes out;

static void gives(const char *line, const char *text, size_t size) {
    Error error;
    assert_done(json_line_string((const uint8_t *)line, strlen(line), "text", &out, &error), error);
    assert_int_equal(out.size, size);
    if (size) assert_memory_equal(out.data, text, size);
}

static void refuses(const char *line, size_t size, const char *message) {
    Error error;
    assert_fails_with(json_line_string((const uint8_t *)line, size, "text", &out, &error), error,
                      message);
}

static void test_finds_the_field(void **state) {
    (void)state;
    gives("{\"text\":\"a\"}", "a", 1);
    gives(" { \"n\" : -1.5e3 , \"text\" : \"a b\" , \"u\" : null } ", "a b", 3);
    gives("{\"text\":\"\"}", "", 0);
    gives("{\"meta\":{\"text\":\"no\",\"a\":[1,{\"b\":[]},[[]],\"]}\"]},\"text\":\"yes\"}", "yes",
          3);
    gives("{\"x\":[{},{\"text\":\"no\"}],\"text\":\"yes\",\"y\":{}}", "yes", 3);
    gives("{\"\\u0074ext\":\"escaped key\"}", "escaped key", 11);
    gives("{\"text\":\"first\",\"text\":\"last\"}", "last", 4);
    gives("{\"textual\":\"no\",\"tex\":\"no\",\"text\":\"yes\",\"b\":true,\"c\":false}", "yes", 3);
}

static void test_decodes_escapes(void **state) {
    (void)state;
    gives("{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t", 8);
    gives("{\"text\":\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"}",
          "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 10);
    gives("{\"text\":\"a\\u0000b\"}", "a\0b", 3);
    gives("{\"text\":\"\\ud83dx\"}", "\xEF\xBF\xBDx", 4);
    gives("{\"text\":\"\\ude00\\ud83d\"}", "\xEF\xBF\xBD\xEF\xBF\xBD", 6);
    gives("{\"text\":\"\\ud83d\\u0041\"}",
          "\xEF\xBF\xBD"
          "A",
          4);
    gives("{\"text\":\"\\ud83d\\ud83d\\ude00\"}", "\xEF\xBF\xBD\xF0\x9F\x98\x80", 7);
    gives("{\"text\":\"\xFF\xC3 \x80\"}", "\xFF\xC3 \x80", 4); /* not UTF-8: kept */
}

static void test_refuses_what_is_not_json(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"", "the line ends at column 1 where '{' should be"},
        {"text", "column 1 is not '{'"},
        {"[\"text\"]", "column 1 is not '{'"},
        {"{\"text\":\"a\"", "column 12 where ',' or '}' should be"},
        {"{\"text\":\"a\"}}", "column 13 is not the end of the line"},
        {"{\"text\":\"a", "where the string's closing quote should be"},
        {"{\"text\":\"a\\", "where an escape should be"},
        {"{\"text\":\"\\x\"}", "column 11 is not an escape"},
        {"{\"text\":\"\\u12g4\"}", "is not four hexadecimal digits"},
        {"{\"text\":\"\\u12", "column 12 is not four hexadecimal digits"},
        {"{\"text\":\"a\tb\"}", "column 11 is not allowed in a string"},
        {"{\"text\" \"a\"}", "is not ':'"},
        {"{\"text\":\"a\",}", "column 13 is not a string"},
        {"{text:\"a\"}", "column 2 is not a string"},
        {"{\"text\":5}", "field \"text\" is not a string"},
        {"{\"text\":null}", "field \"text\" is not a string"},
        {"{\"a\":[1,],\"text\":\"\"}", "is not a value"},
        {"{\"a\":[1 2],\"text\":\"\"}", "is not ',' or a closing bracket"},
        {"{\"a\":[1},\"text\":\"\"}", "is not ',' or a closing bracket"},
        {"{\"a\":{\"b\"},\"text\":\"\"}", "is not ':'"},
        {"{\"a\":{1:2},\"text\":\"\"}", "is not a string"},
        {"{\"a\":tru,\"text\":\"\"}", "is not a value"},
        {"{\"a\":1x,\"text\":\"\"}", "is not a value"},
        {"{\"a\":,\"text\":\"\"}", "is not a value"},
        {"{}", "there is no field \"text\"; choose with --field from: (none)"},
        {"{\"id\":1,\"content\":\"x\"}", "choose with --field from: id, content"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(cases[i].line, strlen(cases[i].line), cases[i].message);
    refuses("{\"a\":\0,\"text\":\"\"}", 17, "is not a value");
    char deep[2000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    refuses(deep, sizeof deep, "nested over 256 deep");
}

/* Every beginning of a good line is refused, and read no further than its end (for sanitizers). */
static void test_every_prefix(void **state) {
    (void)state;
    static const char line[] = "{\"a\":{\"b\":[1,\"\\u00e9\"]},\"text\":\"\\ud83d\\ude00\\n\"}";
    Error error;
    for (size_t size = 0; size < sizeof line - 1; size++) {
        uint8_t *copy = test_malloc(size + 1);
        memcpy(copy, line, size);
        assert_false(json_line_string(copy, size, "text", &out, &error));
        test_free(copy);
    }
}

static int tear_down(void **state) {
    (void)state;
    bytes_free(&out);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_field),
        cmocka_unit_test(test_decodes_escapes),
        cmocka_unit_test(test_refuses_what_is_not_json),
        cmocka_unit_test(test_every_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
