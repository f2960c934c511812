#include "support.h"

#include <math.h>

#include "numeric/power.h"

static void test_small_powers(void **state) {
    (void)state;
    assert_true(integer_power(0.9, 0) == 1);
    assert_true(integer_power(0.9, 1) == 0.9);
    assert_true(integer_power(-3, 5) == -243);
    assert_true(integer_power(0, 0) == 1 && integer_power(0, 7) == 0);
}

static void test_against_libm(void **state) {
    (void)state;
    static const double bases[] = {0.8, 0.9, 0.95, 0.995, 0.999};
    for (int b = 0; b < 5; b++)
        for (int64_t exponent = 1; exponent < 10000; exponent += exponent / 7 + 1) {
            const double want = pow(bases[b], (double)exponent);
            assert_true(fabs(integer_power(bases[b], exponent) - want) <= 1e-12 * want);
        }
}

static void test_vanishes_in_the_end(void **state) {
    (void)state;
    assert_true(integer_power(0.999, INT64_MAX) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_powers),
        cmocka_unit_test(test_against_libm),
        cmocka_unit_test(test_vanishes_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
