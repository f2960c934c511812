/* bf16: every value survives a round trip, and rounding is to nearest, ties to even. */
#include "support.h"

#include <math.h>

#include "base/random.h"
#include "numeric/dtype.h"

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void every_value_survives(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 65536; code++) {
        float value = bf16_to_float((bf16)code);
        if (isnan(value))
            assert_true(isnan(bf16_to_float(bf16_from_float(value))));
        else
            assert_int_equal(bf16_from_float(value), code);
    }
}

static void rounds_to_nearest_even(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t bits = random_u32(1, 0, i);
        if (i % 4 == 0) bits = (bits & 0xffff0000u) | 0x8000u; /* a tie */
        if ((bits & 0x7f800000u) == 0x7f800000u) continue;
        float value = float_of(bits);
        double below = (double)bf16_to_float((bf16)(bits >> 16));
        double above =
            below + copysign(ldexp(1, ilogb((double)float_of(bits & 0x7f800000u)) - 7), below);
        if ((bits & 0x7f800000u) == 0) above = below + copysign(0x1p-133, (double)value);
        double to_below = fabs((double)value - below), to_above = fabs(above - (double)value);
        bool up = to_above < to_below || (to_above == to_below && (bits >> 16 & 1));
        assert_int_equal(bf16_from_float(value), (bits >> 16) + up);
    }
}

static void keeps_what_is_not_finite(void **state) {
    (void)state;
    assert_int_equal(bf16_from_float(INFINITY), 0x7f80);
    assert_int_equal(bf16_from_float(-INFINITY), 0xff80);
    assert_int_equal(bf16_from_float(3.4028234e38f), 0x7f80); /* beyond the largest bf16 */
    for (uint32_t low = 1; low < 0x800000; low = low * 2 + 1)
        assert_true(isnan(bf16_to_float(bf16_from_float(float_of(0x7f800000u | low)))));
}

static void sizes_and_names(void **state) {
    (void)state;
    assert_int_equal(dtype_size(DTYPE_F32), sizeof(float));
    assert_int_equal(dtype_size(DTYPE_BF16), sizeof(bf16));
    assert_int_equal(dtype_size(DTYPE_I32), sizeof(int32_t));
    assert_int_equal(dtype_size(DTYPE_U8), 1);
    assert_string_equal(dtype_name(DTYPE_BF16), "bf16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_survives),
        cmocka_unit_test(rounds_to_nearest_even),
        cmocka_unit_test(keeps_what_is_not_finite),
        cmocka_unit_test(sizes_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
