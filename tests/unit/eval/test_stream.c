/* Streaming: whatever the cuts between tokens, the text is the same, valid, and ends at the stop
 * string. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "eval/stream.h"
#include "support.h"
#include "text/utf8.h"

#define REPLACED "\xEF\xBF\xBD"

static void push(TextStream *stream, const char *text, size_t size, Bytes *out) {
    Error error;
    assert_done(text_stream_push(stream, (const uint8_t *)text, size, out, &error), error);
    assert_int_equal(utf8_valid_prefix(out->data, out->size), out->size);
}

static void finish(TextStream *stream, Bytes *out) {
    Error error;
    assert_done(text_stream_finish(stream, out, &error), error);
    text_stream_free(stream);
}

static void assert_text(const Bytes *out, const char *expected) {
    if (out->size != strlen(expected) || (out->size && memcmp(out->data, expected, out->size)))
        fail_msg("got '%.*s', not '%s'", (int)out->size, (const char *)out->data, expected);
}

/* The text must come out as `expected` however it is cut in three. */
static void check_all_cuts(const char *text, const char *const *stops, size_t stop_count,
                           const char *expected) {
    size_t size = strlen(text);
    for (size_t a = 0; a <= size; a++)
        for (size_t b = a; b <= size; b++) {
            TextStream stream = {.stops = stops, .stop_count = stop_count};
            Bytes out = {0};
            push(&stream, text, a, &out);
            push(&stream, text + a, b - a, &out);
            push(&stream, text + b, size - b, &out);
            finish(&stream, &out);
            assert_text(&out, expected);
            bytes_free(&out);
        }
}

static void test_valid_text_passes(void **state) {
    (void)state;
    check_all_cuts("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z", NULL, 0,
                   "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z");
    check_all_cuts("", NULL, 0, "");
}

static void test_invalid_bytes_are_replaced(void **state) {
    (void)state;
    check_all_cuts("a\xFFz", NULL, 0, "a" REPLACED "z");
    check_all_cuts("\xE2\x82z", NULL, 0, REPLACED "z");                  /* cut off by another */
    check_all_cuts("\xF0\x9F\x98", NULL, 0, REPLACED);                   /* cut off by the end */
    check_all_cuts("\xC0\x80", NULL, 0, REPLACED REPLACED);              /* overlong */
    check_all_cuts("\xED\xA0\x80", NULL, 0, REPLACED REPLACED REPLACED); /* surrogate */
    check_all_cuts("\xF4\x90\x80\x80", NULL, 0, REPLACED REPLACED REPLACED REPLACED);
    /* The example of Unicode 15, table 3-8. */
    check_all_cuts("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", NULL, 0,
                   "a" REPLACED REPLACED REPLACED "b" REPLACED "c" REPLACED REPLACED "d");
}

static void test_nothing_is_held_longer_than_needed(void **state) {
    (void)state;
    const char *const stops[] = {"END"};
    TextStream stream = {.stops = stops, .stop_count = 1};
    Bytes out = {0};
    push(&stream, "abc\xC3", 4, &out);
    assert_text(&out, "abc");
    push(&stream, "\xA9", 1, &out);
    assert_text(&out, "abc\xC3\xA9");
    push(&stream, "E", 1, &out);
    assert_text(&out, "abc\xC3\xA9");
    push(&stream, "N.", 2, &out);
    assert_text(&out, "abc\xC3\xA9"
                      "EN.");
    assert_false(stream.stopped);
    finish(&stream, &out);
    bytes_free(&out);
}

static void test_stop_strings(void **state) {
    (void)state;
    const char *const one[] = {"aab"};
    check_all_cuts("xaaab!", one, 1, "xa");
    check_all_cuts("xaaa", one, 1, "xaaa"); /* a beginning only: shown in the end */
    check_all_cuts("aab", one, 1, "");
    const char *const sentence[] = {"\n\n", "\xE2\x82\xAC"};
    check_all_cuts("a\n\xE2\x82\xAC!", sentence, 2, "a\n");
    check_all_cuts("a\n\n\n", sentence, 2, "a");
    /* The first to be complete counts; of those that end together, the longest. */
    const char *const nested[] = {"abcd", "c", "bc"};
    check_all_cuts("xabcdef", nested, 3, "xa");
    /* A character that the stop string cuts off is broken. */
    check_all_cuts("x\xC3"
                   "aab",
                   one, 1, "x" REPLACED);
}

static void test_nothing_follows_a_stop(void **state) {
    (void)state;
    const char *const stops[] = {"."};
    TextStream stream = {.stops = stops, .stop_count = 1};
    Bytes out = {0};
    push(&stream, "One. Two", 8, &out);
    assert_true(stream.stopped);
    push(&stream, "three", 5, &out);
    finish(&stream, &out);
    assert_text(&out, "One");
    bytes_free(&out);
}

/* Random bytes of the kinds that decide, in random pieces: the same as all at once, and valid. */
static void test_random_bytes(void **state) {
    (void)state;
    static const uint8_t kinds[] = {'a',  'b',  0x80, 0xBF, 0xC3, 0xE0,
                                    0xE2, 0xED, 0xF0, 0xF4, 0x9F, 0xFF};
    const char *const stops[] = {"ab\x80", "bbb"};
    for (uint64_t round = 0; round < 5000; round++) {
        char text[24];
        for (uint64_t i = 0; i < sizeof text; i++)
            text[i] = (char)kinds[random_below(1, round, i, sizeof kinds)];
        Bytes whole = {0}, pieces = {0};
        TextStream a = {.stops = stops, .stop_count = 2}, b = a;
        push(&a, text, sizeof text, &whole);
        finish(&a, &whole);
        for (size_t at = 0, size; at < sizeof text; at += size) {
            size = 1 + random_below(2, round, at, 4);
            if (size > sizeof text - at) size = sizeof text - at;
            push(&b, text + at, size, &pieces);
        }
        finish(&b, &pieces);
        assert_int_equal(whole.size, pieces.size);
        if (whole.size) assert_memory_equal(whole.data, pieces.data, whole.size);
        bytes_free(&whole);
        bytes_free(&pieces);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_text_passes),
        cmocka_unit_test(test_invalid_bytes_are_replaced),
        cmocka_unit_test(test_nothing_is_held_longer_than_needed),
        cmocka_unit_test(test_stop_strings),
        cmocka_unit_test(test_nothing_follows_a_stop),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
