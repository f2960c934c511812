#include "support.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

static void test_bytes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"17", 17},
                {"16G", 16ll << 30},
                {"16GB", 16ll << 30},
                {"16GiB", 16ll << 30},
                {"1.5K", 1536},
                {"512M", 512 << 20},
                {"2T", 2ll << 40},
                {"1e3", 1000},
                {"8B", 8}};
    static const char *const bad[] = {"",
                                      "G",
                                      "-1",
                                      "1.5",
                                      "1X",
                                      "16 G",
                                      "0x10",
                                      "nan",
                                      "inf",
                                      "1GG",
                                      "9e99",
                                      "8388608T",
                                      "9223372036854775808",
                                      "1,5G"};
    Error error;
    int64_t value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_done(parse_bytes(good[i].text, &value, &error), error);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails_with(parse_bytes(bad[i], &value, &error), error, bad[i]);
}

static void test_counts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"5000", 5000},       {"500K", 500000},  {"500k", 500000}, {"2.5B", 2500000000},
                {"2.5G", 2500000000}, {"1.1M", 1100000}, {"0.7M", 700000}, {"3T", 3000000000000},
                {"512Ki", 524288},    {"1Mi", 1048576},  {"1.001K", 1001}};
    static const char *const bad[] = {"", "K", "-5", "0.5", "1.0001K", "5KB", "ten", "1e30"};
    Error error;
    int64_t value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_done(parse_count(good[i].text, &value, &error), error);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails_with(parse_count(bad[i], &value, &error), error, bad[i]);
}

static void test_durations(void **state) {
    (void)state;
    Error error;
    double seconds;
    assert_done(parse_duration("90", &seconds, &error), error);
    assert_true(seconds == 90);
    assert_done(parse_duration("15m", &seconds, &error), error);
    assert_true(seconds == 900);
    assert_done(parse_duration("1.5h", &seconds, &error), error);
    assert_true(seconds == 5400);
    assert_fails_with(parse_duration("5 minutes", &seconds, &error), error, "5 minutes");
    assert_fails_with(parse_duration("-5m", &seconds, &error), error, "negative");
}

static void test_formats(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(format_bytes(text, 0), "0 bytes");
    assert_string_equal(format_bytes(text, 1), "1 byte");
    assert_string_equal(format_bytes(text, 1023), "1023 bytes");
    assert_string_equal(format_bytes(text, 5ll << 28), "1.25 GiB");
    assert_string_equal(format_bytes(text, INT64_MAX), "8388608.00 TiB");
    assert_string_equal(format_count(text, 999), "999");
    assert_string_equal(format_count(text, 124.4e6), "124.4M");
    assert_string_equal(format_count(text, 2.5e9), "2.50B");
    assert_string_equal(format_duration(text, 0.25), "250ms");
    assert_string_equal(format_duration(text, 42), "42s");
    assert_string_equal(format_duration(text, 59.7), "1m 00s");
    assert_string_equal(format_duration(text, 200), "3m 20s");
    assert_string_equal(format_duration(text, 3900), "1h 05m");
    assert_string_equal(format_duration(text, 3.0 * 86400 + 4 * 3600), "3d 04h");
    assert_string_equal(format_duration(text, NAN), "unknown");
    assert_string_equal(format_duration(text, 1e300), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
