#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "faults.h"
#include "support.h"
#include "train/checkpoint.h"
#include "train/run_directory.h"

static const char *inside(const char *directory, const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static RunDirectory open_run(const char *path) {
    RunDirectory run;
    Error error;
    assert_done(run_directory_open(&run, path, &error), error);
    return run;
}

static void write_steps(const RunDirectory *run, int64_t first, int64_t last) {
    Error error;
    json_t *object = json_object();
    for (int64_t step = first; step <= last; step++) {
        CheckpointContents contents = {.step = step, .config = object, .state = object};
        assert_done(checkpoint_write(run->checkpoints, &contents, &error), error);
    }
    json_decref(object);
}

static void opening_makes_what_is_missing(void **state) {
    (void)state;
    const char *path = test_path("new/run");
    RunDirectory run = open_run(path);
    assert_true(path_is_directory(inside(path, "tensorboard")));
    assert_true(path_is_directory(inside(path, "checkpoints")));
    assert_string_equal(run.config, inside(path, "config.yaml"));
    assert_string_equal(run.log, inside(path, "log.jsonl"));
    assert_false(path_exists(inside(path, "checkpoints/.probe")));
    run_directory_close(&run);
    run = open_run(path); /* and again */
    run_directory_close(&run);
}

static void a_second_process_is_refused_by_the_firsts_pid(void **state) {
    (void)state;
    const char *path = test_path("locked");
    RunDirectory run = open_run(path);
    char pid[32];
    snprintf(pid, sizeof pid, "process %d;", (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        RunDirectory other;
        Error error;
        run_directory_close(&run); /* only this process's copy of the descriptor */
        bool done = run_directory_open(&other, path, &error);
        _exit(done ? 1 : strstr(error.message, pid) ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run_directory_close(&run);
}

static void the_lock_of_a_killed_process_is_no_obstacle(void **state) {
    (void)state;
    const char *path = test_path("stale");
    pid_t child = fork();
    if (child == 0) {
        RunDirectory run;
        Error error;
        _exit(run_directory_open(&run, path, &error) ? 0 : 1); /* the lock file stays */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(path_exists(inside(path, "lock")));
    RunDirectory run = open_run(path);
    run_directory_close(&run);
}

static void an_unwritable_directory_is_found_at_once(void **state) {
    (void)state;
    RunDirectory run;
    Error error;
    assert_fails_with(run_directory_open(&run, "/proc/hearth", &error), error, "/proc/hearth");
    const char *file = test_path("file");
    assert_done(file_write(file, "x", 1, &error), error);
    assert_fails_with(run_directory_open(&run, file, &error), error, "not a directory");
    const char *path = test_path("faults");
    int64_t call = 1;
    for (;; call++) {
        faults_arm(FAULTS_ALL, FAULT_LASTING, call);
        bool done = run_directory_open(&run, path, &error);
        bool reached = faults_disarm();
        assert_int_equal(done, !reached);
        if (!reached) break;
        assert_int_equal(run.lock, -1); /* let go of */
    }
    assert_true(call > 10);
    run_directory_close(&run);
}

static void too_little_space_is_said(void **state) {
    (void)state;
    RunDirectory run = open_run(test_path("space"));
    Error error;
    assert_done(run_directory_check_space(&run, 1, &error), error);
    assert_fails_with(run_directory_check_space(&run, INT64_MAX, &error), error, "free");
    run_directory_close(&run);
}

static void checkpoints_are_listed_in_order(void **state) {
    (void)state;
    RunDirectory run = open_run(test_path("listed"));
    Error error;
    int64_t *steps;
    size_t count;
    assert_done(checkpoints_list(run.checkpoints, &steps, &count, &error), error);
    assert_int_equal(count, 0);
    free(steps);
    assert_null(checkpoints_latest(run.checkpoints, &error));
    assert_non_null(strstr(error.message, "holds no checkpoint"));
    write_steps(&run, 8, 12);
    assert_done(directory_create(inside(run.checkpoints, "best"), &error), error);
    assert_done(checkpoints_list(run.checkpoints, &steps, &count, &error), error);
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(steps[i], 8 + i);
    free(steps);
    run_directory_close(&run);
    assert_false(checkpoints_list(test_path("absent"), &steps, &count, &error));
}

/* The steps that are there, as text: "3 4 ". */
static const char *remaining(const RunDirectory *run) {
    static char text[256];
    Error error;
    int64_t *steps;
    size_t count;
    *text = 0;
    assert_done(checkpoints_list(run->checkpoints, &steps, &count, &error), error);
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", (int)steps[i]);
    free(steps);
    return text;
}

static void pruning_keeps_the_newest_whole_ones(void **state) {
    (void)state;
    RunDirectory run = open_run(test_path("pruned"));
    Error error;
    write_steps(&run, 1, 6);
    assert_done(checkpoints_prune(run.checkpoints, 0, &error), error);
    assert_string_equal(remaining(&run), "1 2 3 4 5 6 ");
    assert_done(checkpoints_prune(run.checkpoints, 4, &error), error);
    assert_string_equal(remaining(&run), "3 4 5 6 ");
    assert_int_equal(unlink(inside(run.checkpoints, "step-00000006/model.safetensors")), 0);
    assert_done(checkpoints_prune(run.checkpoints, 1, &error), error);
    assert_string_equal(remaining(&run), "5 6 ");
    assert_false(path_exists(inside(run.checkpoints, ".step-00000004.tmp")));
    run_directory_close(&run);
}

static void leftovers_are_removed_and_nothing_else(void **state) {
    (void)state;
    const char *path = test_path("leftovers");
    RunDirectory run = open_run(path);
    Error error;
    write_steps(&run, 1, 1);
    assert_done(directory_create(inside(run.checkpoints, ".step-00000002.tmp"), &error), error);
    assert_done(file_write(inside(run.checkpoints, ".step-00000002.tmp/x"), "x", 1, &error), error);
    assert_done(directory_create(inside(run.checkpoints, "mine.tmp"), &error), error);
    run_directory_close(&run);
    run = open_run(path);
    assert_false(path_exists(inside(run.checkpoints, ".step-00000002.tmp")));
    assert_true(path_exists(inside(run.checkpoints, "mine.tmp")));
    assert_string_equal(remaining(&run), "1 ");
    run_directory_close(&run);
}

int main(void) {
    test_directory();
    log_set_quiet(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_makes_what_is_missing),
        cmocka_unit_test(a_second_process_is_refused_by_the_firsts_pid),
        cmocka_unit_test(the_lock_of_a_killed_process_is_no_obstacle),
        cmocka_unit_test(an_unwritable_directory_is_found_at_once),
        cmocka_unit_test(too_little_space_is_said),
        cmocka_unit_test(checkpoints_are_listed_in_order),
        cmocka_unit_test(pruning_keeps_the_newest_whole_ones),
        cmocka_unit_test(leftovers_are_removed_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
