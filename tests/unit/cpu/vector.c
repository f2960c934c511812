/* The vector layer, compiled once per instruction set with that instance's flags. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "cpu/kernels.h"
#include "cpu/vector.h"
#include "support.h"

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* |actual - exact| in units of the last place that a float of this size has */
static double ulps(float actual, double exact) {
    if (isinf(actual) && exact > (double)FLT_MAX) return 0;
    int exponent = ilogb(exact) < -126 ? -126 : ilogb(exact);
    return fabs((double)actual - exact) / ldexp(1, exponent - 23);
}

/* Every 499th float between the bounds, negative and positive; returns the largest error in ulps.
 */
static double worst(vfloat (*function)(vfloat), double (*exact)(double), float lowest,
                    float highest) {
    double most = 0;
    for (uint32_t bits = 0; float_of(bits) <= -lowest; bits += 499)
        for (int sign = 0; sign < 2; sign++) {
            float x = float_of(bits | (uint32_t)sign << 31);
            if (x > highest) continue;
            double error = ulps(function(splat(x))[W - 1], exact((double)x));
            if (!(error <= most)) most = error;
        }
    return most;
}

static void test_exp(void **state) {
    (void)state;
    double natural = worst(vexp, exp, -120, 88.8f), binary = worst(vexp2, exp2, -170, 128);
    print_message("exp %.2f ulp, exp2 %.2f ulp\n", natural, binary);
    assert_true(natural <= 2);
    assert_true(binary <= 2);
    assert_true(vexp(splat(0))[0] == 1.0f);
    assert_true(vexp(splat(-INFINITY))[0] == 0.0f && vexp2(splat(-INFINITY))[0] == 0.0f);
    assert_true(vexp(splat(-FLT_MAX))[0] == 0.0f && vexp2(splat(-FLT_MAX))[0] == 0.0f);
    assert_true(isinf(vexp(splat(89))[0]) && isinf(vexp(splat(INFINITY))[0]));
    assert_true(isnan(vexp(splat(NAN))[0]) && isnan(vexp2(splat(NAN))[0]));
}

static void test_sigmoid(void **state) {
    (void)state;
    for (float x = -80; x < 80; x += 0.01f) {
        double exact = 1 / (1 + exp(-(double)x));
        assert_true(ulps(vsigmoid(splat(x))[0], exact) <= 4);
    }
    assert_true(vsigmoid(splat(-1000))[0] == 0.0f && vsigmoid(splat(1000))[0] == 1.0f);
}

/* Every upper half with the lower halves at which rounding turns. */
static void test_bf16_rounds_like_the_definition(void **state) {
    (void)state;
    const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (uint32_t upper = 0; upper < 0x10000; upper++)
        for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
            float x = float_of(upper << 16 | lower[i]);
            bf16 rounded[W], part[W] = {0};
            vstore_bf16(rounded, (vfloat)((vuint){0} + bits_of(x)));
            vstore_bf16_part(part, (vfloat)((vuint){0} + bits_of(x)), W - 1);
            assert_int_equal(rounded[0], bf16_from_float(x));
            assert_int_equal(part[W - 2], bf16_from_float(x));
            assert_int_equal(bits_of(vload_bf16(rounded)[W - 1]), (uint32_t)rounded[W - 1] << 16);
        }
}

static void test_parts_stop_at_the_count(void **state) {
    (void)state;
    float numbers[W];
    bf16 halves[W];
    for (int i = 0; i < W; i++)
        numbers[i] = (float)(i + 1), halves[i] = bf16_from_float(numbers[i]);
    for (int count = 0; count <= W; count++) {
        vfloat x = vload_f32_part(numbers, count), y = vload_bf16_part(halves, count);
        float stored[W] = {0};
        bf16 stored_halves[W] = {0};
        vstore_f32_part(stored, vload_f32(numbers), count);
        vstore_bf16_part(stored_halves, vload_f32(numbers), count);
        for (int i = 0; i < W; i++) {
            const float expected = i < count ? numbers[i] : 0;
            assert_true(x[i] == expected && y[i] == expected && stored[i] == expected);
            assert_true(bf16_to_float(stored_halves[i]) == expected);
        }
    }
}

static void test_lanes(void **state) {
    (void)state;
    vfloat x;
    for (int i = 0; i < W; i++) x[i] = (float)(i % 3 - i);
    float sum = 0, largest = x[0];
    for (int i = 0; i < W; i++) sum += x[i], largest = fmaxf(largest, x[i]);
    assert_true(vsum(x) == sum);
    assert_true(vlargest(x) == largest);
    vfloat chosen = vselect(x < splat(-3), splat(1), vabs(x));
    for (int i = 0; i < W; i++) assert_true(chosen[i] == (x[i] < -3 ? 1 : -x[i]));
    assert_true(isnan(vmax(splat(0), splat(NAN))[0]) && isnan(vmin(splat(0), splat(NAN))[0]));
}

static __attribute__((noinline)) int run(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_sigmoid),
        cmocka_unit_test(test_bf16_rounds_like_the_definition),
        cmocka_unit_test(test_parts_stop_at_the_count),
        cmocka_unit_test(test_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#define TEXT(name) #name
#define EXPANDED_TEXT(name) TEXT(name)

/* 77: this processor lacks the instructions. */
int main(void) {
    Error error;
    setenv("HEARTH_ISA", EXPANDED_TEXT(KERNEL_ISA), 1);
    return cpu_kernels(DTYPE_F32, &error) ? run() : 77;
}
