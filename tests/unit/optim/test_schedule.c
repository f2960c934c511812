#include <math.h>

#include "optim/schedule.h"
#include "support.h"

static void assert_rate(const Schedule *schedule, int64_t step, double expected) {
    double rate = schedule_rate(schedule, step);
    if (fabs(rate - expected) > 1e-12)
        fail_msg("step %lld: %.12g, not %.12g", (long long)step, rate, expected);
}

static void test_warmup_rises_to_the_peak(void **state) {
    (void)state;
    Schedule schedule = {
        .shape = SCHEDULE_COSINE, .peak = 1, .floor = 0.1, .warmup = 4, .steps = 104};
    assert_rate(&schedule, 1, 0.25);
    assert_rate(&schedule, 4, 1);
    assert_rate(&schedule, 54, 0.55); /* half-way down */
    assert_rate(&schedule, 104, 0.1);
}

static void test_linear(void **state) {
    (void)state;
    Schedule schedule = {
        .shape = SCHEDULE_LINEAR, .peak = 2, .floor = 0, .warmup = 0, .steps = 100};
    assert_rate(&schedule, 1, 1.98);
    assert_rate(&schedule, 50, 1);
    assert_rate(&schedule, 100, 0);
}

static void test_wsd_is_constant_then_cools(void **state) {
    (void)state;
    Schedule schedule = {
        .shape = SCHEDULE_WSD, .peak = 1, .floor = 0, .cooldown = 0.2, .warmup = 10, .steps = 100};
    assert_rate(&schedule, 11, 1);
    assert_rate(&schedule, 81, 1);
    assert_rate(&schedule, 91, 0.5);
    assert_rate(&schedule, 100, 0.05);
}

static void test_runs_that_are_all_warmup(void **state) {
    (void)state;
    Schedule schedule = {
        .shape = SCHEDULE_COSINE, .peak = 1, .floor = 0.1, .warmup = 5, .steps = 5};
    assert_rate(&schedule, 5, 1);
    schedule = (Schedule){.shape = SCHEDULE_WSD, .peak = 1, .cooldown = 1, .warmup = 3, .steps = 3};
    assert_rate(&schedule, 3, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_warmup_rises_to_the_peak),
                                       cmocka_unit_test(test_linear),
                                       cmocka_unit_test(test_wsd_is_constant_then_cools),
                                       cmocka_unit_test(test_runs_that_are_all_warmup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
