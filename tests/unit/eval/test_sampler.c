/* Sampling: the filters keep what they say, and what they keep is drawn as often as it should be.
 */
#include <math.h>
#include <string.h>

#include "eval/sampler.h"
#include "support.h"

static const SamplingSettings plain = {.temperature = 1, .top_p = 1};

static Sampler *sampler_of(SamplingSettings settings, int64_t vocab) {
    Error error;
    Sampler *sampler = sampler_new(&settings, vocab, &error);
    assert_done(sampler != NULL, error);
    return sampler;
}

static uint32_t next(Sampler *sampler, const float *logits, int64_t position) {
    Error error;
    uint32_t id = UINT32_MAX;
    assert_done(sampler_next(sampler, logits, position, &id, &error), error);
    return id;
}

/* Draws 20,000 times and compares the counts with `expected` (which sums to 1): Pearson's
 * chi-square must stay below the 99.9% point for up to 9 degrees of freedom, and what has no chance
 * must not occur. */
static void check_distribution(SamplingSettings settings, const float *logits,
                               const double *expected, int vocab) {
    enum { DRAWS = 20000 };
    int counts[16] = {0};
    Sampler *sampler = sampler_of(settings, vocab);
    for (int64_t i = 0; i < DRAWS; i++) counts[next(sampler, logits, i)]++;
    double chi_square = 0;
    for (int i = 0; i < vocab; i++) {
        double mean = expected[i] * DRAWS;
        if (mean == 0)
            assert_int_equal(counts[i], 0);
        else
            chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    if (chi_square > 27.9) fail_msg("chi-square is %g", chi_square);
    sampler_free(sampler);
}

/* Logits whose softmax is .4 .3 .2 .1, in another order. */
static const double shares[4] = {.2, .4, .1, .3};
static float logits4[4];

static int setup(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) logits4[i] = (float)log(shares[i]) + 7;
    return 0;
}

static void test_plain_softmax(void **state) {
    (void)state;
    check_distribution(plain, logits4, shares, 4);
    SamplingSettings other = plain;
    other.seed = 99;
    check_distribution(other, logits4, shares, 4);
}

static void test_temperature(void **state) {
    (void)state;
    SamplingSettings half = plain;
    half.temperature = 0.5; /* squares the shares */
    const double squared[4] = {.04 / .3, .16 / .3, .01 / .3, .09 / .3};
    check_distribution(half, logits4, squared, 4);
}

static void test_top_k(void **state) {
    (void)state;
    SamplingSettings settings = plain;
    settings.top_k = 2;
    check_distribution(settings, logits4, (const double[]){0, 4 / 7., 0, 3 / 7.}, 4);
    settings.top_k = 4;
    check_distribution(settings, logits4, shares, 4);
    settings.top_k = 1000;
    check_distribution(settings, logits4, shares, 4);
}

static void test_top_p(void **state) {
    (void)state;
    SamplingSettings settings = plain;
    settings.top_p = 0.65; /* .4 + .3 reach it */
    check_distribution(settings, logits4, (const double[]){0, 4 / 7., 0, 3 / 7.}, 4);
    settings.top_p = 0.75; /* .4 + .3 do not */
    check_distribution(settings, logits4, (const double[]){2 / 9., 4 / 9., 0, 3 / 9.}, 4);
    settings.top_p = 1e-9; /* never nothing */
    check_distribution(settings, logits4, (const double[]){0, 1, 0, 0}, 4);
}

static void test_top_p_is_of_what_top_k_left(void **state) {
    (void)state;
    SamplingSettings settings = plain;
    settings.top_k = 2;
    settings.top_p = 0.55; /* of .7: .385, which .4 alone reaches */
    check_distribution(settings, logits4, (const double[]){0, 1, 0, 0}, 4);
}

static void test_min_p(void **state) {
    (void)state;
    SamplingSettings settings = plain;
    settings.min_p = 0.4; /* of .4: .16 */
    check_distribution(settings, logits4, (const double[]){2 / 9., 4 / 9., 0, 3 / 9.}, 4);
    settings.min_p = 1;
    check_distribution(settings, logits4, (const double[]){0, 1, 0, 0}, 4);
}

static void test_greedy_takes_the_first_of_equals(void **state) {
    (void)state;
    const float logits[] = {1, 3, -INFINITY, 3, 2};
    SamplingSettings settings = plain;
    settings.temperature = 0;
    Sampler *sampler = sampler_of(settings, 5);
    for (int64_t i = 0; i < 10; i++) assert_int_equal(next(sampler, logits, i), 1);
    sampler_free(sampler);
}

static void test_equals_rank_by_id(void **state) {
    (void)state;
    float logits[8] = {0};
    SamplingSettings settings = plain;
    settings.top_k = 3;
    check_distribution(settings, logits, (const double[]){1 / 3., 1 / 3., 1 / 3., 0, 0, 0, 0, 0},
                       8);
}

static void test_only_one_possible(void **state) {
    (void)state;
    float logits[300];
    for (int i = 0; i < 300; i++) logits[i] = -INFINITY;
    logits[123] = -50;
    SamplingSettings filtered = {.temperature = 1, .top_k = 7, .top_p = 0.9, .min_p = 0.01};
    Sampler *a = sampler_of(plain, 300), *b = sampler_of(filtered, 300);
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(next(a, logits, i), 123);
        assert_int_equal(next(b, logits, i), 123);
    }
    sampler_free(a);
    sampler_free(b);
}

static void test_vocabulary_of_one(void **state) {
    (void)state;
    SamplingSettings settings = {.temperature = 1, .top_k = 5, .top_p = 0.5};
    Sampler *sampler = sampler_of(settings, 1);
    assert_int_equal(next(sampler, (const float[]){-3}, 0), 0);
    sampler_free(sampler);
}

/* A draw depends on seed and position, and on nothing drawn before. */
static void test_draws_are_a_function_of_seed_and_position(void **state) {
    (void)state;
    float logits[50] = {0};
    SamplingSettings other = plain;
    other.seed = 1;
    Sampler *a = sampler_of(plain, 50), *b = sampler_of(plain, 50), *c = sampler_of(other, 50);
    uint32_t forward[100];
    int differ = 0;
    for (int64_t i = 0; i < 100; i++) forward[i] = next(a, logits, i);
    for (int64_t i = 100; i-- > 0;) {
        assert_int_equal(next(b, logits, i), forward[i]);
        differ += next(c, logits, i) != forward[i];
    }
    assert_true(differ > 80);
    sampler_free(a);
    sampler_free(b);
    sampler_free(c);
}

static void test_bad_logits(void **state) {
    (void)state;
    Error error;
    uint32_t id;
    Sampler *sampler = sampler_of(plain, 3);
    assert_fails_with(sampler_next(sampler, (const float[]){0, 1, NAN}, 0, &id, &error), error,
                      "token 2");
    assert_fails_with(sampler_next(sampler, (const float[]){0, INFINITY, 0}, 0, &id, &error), error,
                      "token 1");
    const float none[] = {-INFINITY, -INFINITY, -INFINITY};
    assert_fails_with(sampler_next(sampler, none, 0, &id, &error), error, "no token to draw");
    sampler_free(sampler);
}

static void test_bad_settings(void **state) {
    (void)state;
    const struct {
        SamplingSettings settings;
        const char *text;
    } cases[] = {
        {{.temperature = -1, .top_p = 1}, "temperature"},
        {{.temperature = NAN, .top_p = 1}, "temperature"},
        {{.temperature = 1, .top_p = 0}, "top-p"},
        {{.temperature = 1, .top_p = 1.5}, "top-p"},
        {{.temperature = 1, .top_p = 1, .top_k = -1}, "top-k"},
        {{.temperature = 1, .top_p = 1, .min_p = 2}, "min-p"},
    };
    Error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails_with(sampler_new(&cases[i].settings, 10, &error) != NULL, error,
                          cases[i].text);
    assert_fails_with(sampler_new(&plain, 0, &error) != NULL, error, "vocabulary");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_softmax),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_top_p_is_of_what_top_k_left),
        cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_greedy_takes_the_first_of_equals),
        cmocka_unit_test(test_equals_rank_by_id),
        cmocka_unit_test(test_only_one_possible),
        cmocka_unit_test(test_vocabulary_of_one),
        cmocka_unit_test(test_draws_are_a_function_of_seed_and_position),
        cmocka_unit_test(test_bad_logits),
        cmocka_unit_test(test_bad_settings),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
