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

/* nanochat's get_muon_momentum() and get_weight_decay(), whose steps count from 0. */
static void test_muon_schedules(void **state) {
    (void)state;
    Schedule schedule = {.shape = SCHEDULE_WSD, .peak = 1, .cooldown = 0.65, .steps = 2520};
    static const double momenta[][2] = {{0, 0.85},     {399, 0.9697},
                                        {400, 0.97},   {881, 0.97},
                                        {882, 0.97},   {883, 0.9699572649572649},
                                        {1701, 0.935}, {2519, 0.9000427350427351}};
    for (size_t i = 0; i < sizeof momenta / sizeof *momenta; i++) {
        double momentum = schedule_momentum(&schedule, (int64_t)momenta[i][0] + 1);
        if (fabs(momentum - momenta[i][1]) > 1e-12)
            fail_msg("step %g: momentum %.15g, not %.15g", momenta[i][0], momentum, momenta[i][1]);
    }
    assert_true(schedule_weight_decay(&schedule, 1) == 1);
    assert_true(fabs(schedule_weight_decay(&schedule, 1261) - 0.5) < 1e-12);
    assert_true(schedule_weight_decay(&schedule, 2520) > 0);
}

/* round(0.65 * 10) is 6 in Python, which rounds halves to even; so is round(0.65 * 30) 20. */
static void test_cooldown_is_whole_steps(void **state) {
    (void)state;
    Schedule schedule = {.shape = SCHEDULE_WSD, .peak = 1, .cooldown = 0.65, .steps = 10};
    assert_rate(&schedule, 5, 1);
    assert_rate(&schedule, 6, 5.0 / 6);
    schedule.steps = 30;
    assert_rate(&schedule, 11, 1);
    assert_rate(&schedule, 12, 0.95);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_warmup_rises_to_the_peak),
                                       cmocka_unit_test(test_linear),
                                       cmocka_unit_test(test_wsd_is_constant_then_cools),
                                       cmocka_unit_test(test_runs_that_are_all_warmup),
                                       cmocka_unit_test(test_muon_schedules),
                                       cmocka_unit_test(test_cooldown_is_whole_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
