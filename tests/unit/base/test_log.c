/* What reaches stderr through a pipe or a file, which is where logs get lost. */
#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

/* What `print` writes to stderr; release with free(). */
static char *captured(void (*print)(void)) {
    Error error;
    const char *path = test_path("stderr");
    int saved = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
    print();
    dup2(saved, STDERR_FILENO);
    close(saved);
    Bytes bytes = {0};
    assert_done(file_read(path, 1 << 20, &bytes, &error), error);
    return (char *)bytes.data;
}

static void expect(void (*print)(void), const char *text) {
    char *found = captured(print);
    assert_string_equal(found, text);
    free(found);
}

static void print_lines(void) {
    log_line("one %d", 1);
    log_warning("two");
    log_status("step %d", 3);
    log_status("step %d", 4);
    log_status_end();
    log_line("five");
}

static void test_plain_lines_through_a_pipe(void **state) {
    (void)state;
    expect(print_lines, "one 1\nwarning: two\nstep 3\nstep 4\nfive\n");
}

static void test_quiet_keeps_warnings(void **state) {
    (void)state;
    log_set_quiet(true);
    expect(print_lines, "warning: two\n");
    log_set_quiet(false);
}

static void print_short_progress(void) {
    Progress progress = progress_start("reading", 10);
    for (uint64_t i = 0; i <= 10; i++) progress_update(&progress, i);
    progress_end(&progress);
}

static void print_long_progress(void) {
    Progress progress = progress_start("reading", 10);
    progress.started -= 30, progress.shown -= 30;
    progress_update(&progress, 4);
    progress_update(&progress, 5); /* too soon after the last */
    progress.shown -= 30;
    progress_update(&progress, 20); /* more than was expected */
    progress_end(&progress);
    progress = progress_start("waiting", 0);
    progress.started -= 30, progress.shown -= 30;
    progress_update(&progress, 7);
    progress_end(&progress);
}

static void test_progress(void **state) {
    (void)state;
    expect(print_short_progress, "");
    expect(print_long_progress,
           "reading: 40.0%, 45s left\nreading: 100.0%, 0ms left\nwaiting: 30s so far\n");
}

static void test_clock(void **state) {
    (void)state;
    double before = seconds_now();
    usleep(20000);
    double elapsed = seconds_now() - before;
    assert_true(elapsed >= 0.02 && elapsed < 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_lines_through_a_pipe),
        cmocka_unit_test(test_quiet_keeps_warnings),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
