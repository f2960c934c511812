/* What CORE draws is what CPython draws: tests/golden/core/sampling.json. */
#include "support.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "eval/core_sampling.h"

enum { SIZES = 2000 };

static json_t *golden;

static int open_golden(void **state) {
    (void)state;
    Error error;
    golden = json_read_file(HEARTH_SOURCE "/tests/golden/core/sampling.json", 1 << 16, &error);
    assert_done(golden != NULL, error);
    return 0;
}

static int close_golden(void **state) {
    (void)state;
    json_decref(golden);
    return 0;
}

static void append_numbers(Bytes *out, const size_t *numbers, size_t count) {
    Error error;
    for (size_t i = 0; i < count; i++)
        for (int byte = 0; byte < 4; byte++)
            assert_done(
                bytes_append(out, &(uint8_t){(uint8_t)(numbers[i] >> (8 * byte))}, 1, &error),
                error);
}

static void check(const char *name, Bytes *numbers) {
    char sha256[SHA256_TEXT];
    sha256_bytes(numbers->data, numbers->size, sha256);
    assert_string_equal(sha256, json_string_value(json_object_get(golden, name)));
    bytes_free(numbers);
}

static void shuffles_are_python_s(void **state) {
    (void)state;
    static size_t order[SIZES];
    Bytes numbers = {0};
    for (size_t n = 1; n <= SIZES; n++) {
        core_shuffle(order, n);
        append_numbers(&numbers, order, n);
    }
    check("shuffle", &numbers);
}

static void check_shots(const char *name, size_t shots) {
    Bytes numbers = {0};
    for (size_t n = shots + 1; n <= SIZES; n++) {
        const size_t indices[] = {0, n / 2, n - 1, 7 * n % 13 % n};
        for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
            size_t chosen[CORE_SHOTS_MAX];
            core_shots(indices[i], n, shots, chosen);
            append_numbers(&numbers, chosen, shots);
        }
    }
    check(name, &numbers);
}

static void samples_are_python_s(void **state) {
    (void)state;
    const char *name;
    json_t *value;
    int checked = 0;
    json_object_foreach (golden, name, value) {
        if (strncmp(name, "shots_", 6) != 0) continue;
        check_shots(name, (size_t)atoi(name + 6));
        checked++;
    }
    assert_int_equal(checked, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffles_are_python_s),
        cmocka_unit_test(samples_are_python_s),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
