#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "faults.h"
#include "support.h"
#include "train/metrics.h"

static const StepMetrics metrics = {.step = 7,
                                    .tokens = 3670016000000,
                                    .epoch = 0.25,
                                    .loss = 3.14159274f,
                                    .lr = 3e-4,
                                    .grad_norm = 0.5,
                                    .step_ms = 812.25,
                                    .tokens_per_s = 1000,
                                    .mfu = 0.61,
                                    .data_wait_ms = 0.125,
                                    .checkpoint_wait_ms = 0,
                                    .mem_bytes = 1LL << 33};

static char *contents(const char *path) {
    Bytes bytes = {0};
    Error error;
    assert_done(file_read(path, 1 << 20, &bytes, &error), error);
    return (char *)bytes.data; /* a NUL follows the data */
}

/* The file's only line, parsed. */
static json_t *only_line(const char *path) {
    char *text = contents(path);
    Error error;
    char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_int_equal(end[1], 0);
    json_t *line = json_read_bytes(path, text, strlen(text), &error);
    if (!line) fail_msg("%s in %s", error.message, text);
    free(text);
    return line;
}

static MetricsLog open_log(const char *path) {
    MetricsLog log;
    Error error;
    unlink(path);
    assert_done(metrics_open(&log, path, &error), error);
    return log;
}

static void a_step_is_one_line_with_every_key(void **state) {
    (void)state;
    const char *path = test_path("step.jsonl");
    MetricsLog log = open_log(path);
    metrics_step(&log, &metrics);
    metrics_close(&log);
    char *text = contents(path);
    assert_string_equal(text,
                        "{\"step\":7,\"tokens\":3670016000000,\"epoch\":0.25,\"loss\":3.14159274,"
                        "\"lr\":0.0003,\"grad_norm\":0.5,\"step_ms\":812.25,"
                        "\"tokens_per_s\":1000,\"mfu\":0.61,\"data_wait_ms\":0.125,"
                        "\"checkpoint_wait_ms\":0,\"mem_bytes\":8589934592}\n");
    free(text);
    json_decref(only_line(path));
}

static void what_is_not_finite_becomes_null(void **state) {
    (void)state;
    const char *path = test_path("nan.jsonl");
    MetricsLog log = open_log(path);
    metrics_evaluation(&log, 3, NAN, -INFINITY);
    metrics_close(&log);
    json_t *line = only_line(path);
    assert_true(json_is_null(json_object_get(line, "val_loss")));
    assert_true(json_is_null(json_object_get(line, "val_bpb")));
    assert_int_equal(json_integer_value(json_object_get(line, "step")), 3);
    json_decref(line);
}

static void messages_are_escaped(void **state) {
    (void)state;
    const char *path = test_path("event.jsonl");
    MetricsLog log = open_log(path);
    Error error;
    metrics_event(&log, "skip", 9, "a \"quote\", a \\, a\nline, %s", "caf\xc3\xa9");
    json_t *line = only_line(path);
    assert_string_equal(json_get_string(line, "event", &error), "skip");
    assert_string_equal(json_get_string(line, "message", &error),
                        "a \"quote\", a \\, a\nline, caf\xc3\xa9");
    json_decref(line);
    metrics_close(&log);

    log = open_log(path);
    metrics_event(&log, "skip", 9, "latin \xe9");
    line = only_line(path);
    assert_string_equal(json_get_string(line, "message", &error), "latin ?");
    json_decref(line);
    metrics_close(&log);

    log = open_log(path);
    char longest[5000];
    memset(longest, 1, sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    metrics_event(&log, "skip", INT64_MIN, "%s", longest);
    json_decref(only_line(path));
    metrics_close(&log);
}

static void a_resumed_run_appends(void **state) {
    (void)state;
    const char *path = test_path("resume.jsonl");
    MetricsLog log = open_log(path);
    Error error;
    metrics_evaluation(&log, 1, 2, 3);
    metrics_close(&log);
    assert_done(metrics_open(&log, path, &error), error);
    metrics_event(&log, "resume", 1, "from step-00000001");
    metrics_close(&log);
    char *text = contents(path);
    assert_string_equal(text,
                        "{\"step\":1,\"val_loss\":2,\"val_bpb\":3}\n"
                        "{\"event\":\"resume\",\"step\":1,\"message\":\"from step-00000001\"}\n");
    free(text);
}

static void a_torn_last_line_does_not_swallow_the_next(void **state) {
    (void)state;
    const char *path = test_path("torn.jsonl");
    Error error;
    assert_done(file_write(path, "{\"step\":1,\"va", 13, &error), error);
    MetricsLog log;
    assert_done(metrics_open(&log, path, &error), error);
    metrics_evaluation(&log, 2, 2, 3);
    metrics_evaluation(&log, 3, 2, 3);
    metrics_close(&log);
    char *text = contents(path);
    assert_string_equal(text, "{\"step\":1,\"va\n{\"step\":2,\"val_loss\":2,\"val_bpb\":3}\n"
                              "{\"step\":3,\"val_loss\":2,\"val_bpb\":3}\n");
    free(text);
}

/* Runs metrics_evaluation() for `lines` lines with stderr in a file; returns what was printed. */
static char *warnings(MetricsLog *log, int lines) {
    const char *path = test_path("stderr");
    int saved = dup(STDERR_FILENO), file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(file, STDERR_FILENO);
    for (int i = 0; i < lines; i++) metrics_evaluation(log, i, 2, 3);
    dup2(saved, STDERR_FILENO);
    close(file);
    close(saved);
    return contents(path);
}

static void a_full_disk_warns_once_and_logging_goes_on(void **state) {
    (void)state;
    Error error;
    MetricsLog log;
    assert_done(metrics_open(&log, "/dev/full", &error), error);
    char *text = warnings(&log, 3);
    const char *first = strstr(text, "log.jsonl: No space left");
    assert_non_null(first);
    assert_null(strstr(first + 1, "log.jsonl"));
    free(text);
    metrics_close(&log);

    const char *path = test_path("full.jsonl");
    log = open_log(path);
    log.warned = true;
    faults_arm(FAULTS_FILES, FAULT_ONCE, 1);
    metrics_evaluation(&log, 1, 2, 3);
    assert_true(faults_disarm());
    metrics_evaluation(&log, 2, 2, 3);
    metrics_close(&log);
    json_decref(only_line(path));
}

static void an_unwritable_path_is_an_error(void **state) {
    (void)state;
    MetricsLog log;
    Error error;
    assert_fails_with(metrics_open(&log, test_path("absent/log.jsonl"), &error), error, "absent");
}

int main(void) {
    test_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_one_line_with_every_key),
        cmocka_unit_test(what_is_not_finite_becomes_null),
        cmocka_unit_test(messages_are_escaped),
        cmocka_unit_test(a_resumed_run_appends),
        cmocka_unit_test(a_torn_last_line_does_not_swallow_the_next),
        cmocka_unit_test(a_full_disk_warns_once_and_logging_goes_on),
        cmocka_unit_test(an_unwritable_path_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
