/* The 8-bit dynamic code, and stochastic rounding to bf16. */
#include "support.h"

#include <math.h>

#include "base/random.h"
#include "numeric/state.h"

static void values_of(float values[256], bool is_signed) {
    for (int i = 0; i < 256; i++) values[i] = state_decode((uint8_t)i, is_signed);
}

static void code_has_the_papers_shape(void **state) {
    (void)state;
    float code[256];
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        values_of(code, is_signed);
        int zero = is_signed ? 127 : 0;
        assert_true(code[255] == 1 && code[zero] == 0);
        for (int i = 1; i < 256; i++) assert_true(code[i - 1] < code[i]);
        for (int i = 1; i < 127 && is_signed; i++) assert_true(code[zero - i] == -code[zero + i]);
        /* Each further decade has twice the parts: 1 (or 2) in [1e-7, 1e-6], ... 64 (128) in
         * [0.1, 1]. */
        double low = 1e-7;
        for (int parts = is_signed ? 1 : 2; parts <= (is_signed ? 64 : 128);
             parts *= 2, low *= 10) {
            int count = 0;
            for (int i = 0; i < 255; i++)
                count += (double)code[i] > low && (double)code[i] < 10 * low;
            assert_int_equal(count, parts);
        }
    }
    assert_true(fabsf(state_decode(1, false) - 3.25e-7f) < 1e-13f);
    assert_true(fabsf(state_decode(128, true) - 5.5e-7f) < 1e-13f);
    assert_true(fabsf(state_decode(254, true) - 0.99296875f) < 1e-7f);
}

/* Inputs on and around every border, and at random over all magnitudes. */
static float probe(const float *code, uint64_t i) {
    if (i < 255 * 8) {
        float border = (float)(0.5 * ((double)code[i / 8] + (double)code[i / 8 + 1]));
        for (uint64_t step = 0; step < i % 8 / 2; step++)
            border = nextafterf(border, i % 2 ? INFINITY : -INFINITY);
        return border;
    }
    float magnitude = exp2f(-24 * random_uniform(2, 0, i));
    return random_u32(2, 1, i) & 1 ? magnitude : -magnitude;
}

/* To the nearest value, or within a few roundings of a border to either. */
static void encodes_to_nearest(void **state) {
    (void)state;
    float code[256];
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        values_of(code, is_signed);
        for (uint64_t i = 0; i < 20000; i++) {
            double x = (double)probe(code, i), nearest = INFINITY;
            if (!is_signed) x = fabs(x);
            for (int c = 0; c < 256; c++) {
                double away = fabs((double)code[c] - x);
                if (away < nearest) nearest = away; /* fmin() here breaks gcc 12 for aarch64 */
            }
            double distance = fabs((double)code[state_encode((float)x, is_signed)] - x);
            assert_true(distance <= nearest + 4e-7 * fabs(x));
        }
    }
}

static void values_encode_to_their_code(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++)
        for (int i = 0; i < 256; i++)
            assert_int_equal(state_encode(state_decode((uint8_t)i, is_signed), is_signed), i);
}

static void odd_values_are_safe(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        int zero = is_signed ? 127 : 0;
        assert_int_equal(state_encode(-0.0f, is_signed), zero);
        assert_int_equal(state_encode(1e-30f, is_signed), zero);
        assert_int_equal(state_encode(1e-40f, is_signed), zero);
        state_encode(NAN, is_signed); /* stays within the tables */
        state_encode(INFINITY, is_signed);
    }
    assert_int_equal(state_encode(-1, true), 0); /* the least value is -0.993 */
}

static void stochastic_rounding_is_unbiased(void **state) {
    (void)state;
    const float value = 1 + 0.3f * 0x1p-7f;
    double sum = 0;
    for (uint64_t i = 0; i < 65536; i++) { /* every value of the 16 bits in use, once */
        bf16 rounded = bf16_stochastic(-value, (uint32_t)i << 16);
        assert_true(rounded == 0xbf80 || rounded == 0xbf81);
        sum += (double)bf16_to_float(rounded);
    }
    assert_true(fabs(sum / 65536 + (double)value) < 0x1p-24);
}

static void stochastic_rounding_keeps_exact_and_not_finite(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 65536; code++) {
        float value = bf16_to_float((bf16)code);
        bf16 rounded = bf16_stochastic(value, 0xffffffffu);
        if (isnan(value))
            assert_true(isnan(bf16_to_float(rounded)));
        else
            assert_int_equal(rounded, code);
    }
    assert_int_equal(bf16_stochastic(nextafterf(2, 0), 0xffff0000u), 0x4000); /* carries over */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_has_the_papers_shape),
        cmocka_unit_test(encodes_to_nearest),
        cmocka_unit_test(values_encode_to_their_code),
        cmocka_unit_test(odd_values_are_safe),
        cmocka_unit_test(stochastic_rounding_is_unbiased),
        cmocka_unit_test(stochastic_rounding_keeps_exact_and_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
