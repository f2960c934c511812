/* The 8-bit dynamic code, its block-wise use, and stochastic rounding to bf16. */
#include "support.h"

#include <math.h>

#include "base/random.h"
#include "numeric/state.h"

static void code_has_the_papers_shape(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const float *code = state_code(is_signed);
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
    assert_true(fabsf(state_code(0)[1] - 3.25e-7f) < 1e-13f);
    assert_true(fabsf(state_code(1)[128] - 5.5e-7f) < 1e-13f);
    assert_true(fabsf(state_code(1)[254] - 0.99296875f) < 1e-7f);
}

static int nearest_by_search(const float *code, float x) {
    int best = 0;
    for (int i = 1; i < 256; i++)
        if (fabs((double)code[i] - (double)x) < fabs((double)code[best] - (double)x)) best = i;
    return best;
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

static void encodes_to_nearest(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++)
        for (uint64_t i = 0; i < 20000; i++) {
            float x = probe(state_code(is_signed), i);
            assert_int_equal(state_encode(state_code(is_signed), x),
                             nearest_by_search(state_code(is_signed), x));
        }
}

static void ties_go_to_the_smaller_code(void **state) {
    (void)state;
    float code[256];
    for (int i = 0; i < 256; i++) code[i] = (float)i;
    for (int i = 0; i < 255; i++) assert_int_equal(state_encode(code, (float)i + 0.5f), i);
}

static void block_equals_the_definition(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const float *code = state_code(is_signed);
        for (uint64_t start = 0; start < 100000; start += 100) {
            float values[100], back[100], absmax = start % 300 ? 3.7e-9f : 1;
            uint8_t codes[100];
            for (uint64_t i = 0; i < 100; i++) values[i] = absmax * probe(code, start + i);
            state_quantize(codes, values, absmax, 100, is_signed);
            state_dequantize(back, codes, absmax, 100, is_signed);
            for (int i = 0; i < 100; i++) {
                assert_int_equal(codes[i], state_encode(code, values[i] / absmax));
                assert_true(back[i] == code[codes[i]] * absmax);
            }
        }
    }
}

static void odd_blocks_are_safe(void **state) {
    (void)state;
    float back[3];
    uint8_t codes[3] = {9, 9, 9};
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        state_quantize(codes, (float[]){0, -0.0f, 0}, 0, 3, is_signed);
        assert_int_equal(codes[1], is_signed ? 127 : 0);
        state_dequantize(back, codes, 0, 3, is_signed);
        assert_true(back[0] == 0 && back[1] == 0 && back[2] == 0);
        state_quantize(codes, (float[]){NAN, INFINITY, -1}, INFINITY, 3, is_signed);
        state_quantize(codes, (float[]){0x1p-149f}, 0x1p-149f, 1, is_signed);
        assert_int_equal(codes[0], 255);
    }
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
        cmocka_unit_test(ties_go_to_the_smaller_code),
        cmocka_unit_test(block_equals_the_definition),
        cmocka_unit_test(odd_blocks_are_safe),
        cmocka_unit_test(stochastic_rounding_is_unbiased),
        cmocka_unit_test(stochastic_rounding_keeps_exact_and_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
