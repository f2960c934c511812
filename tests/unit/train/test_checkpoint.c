#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "faults.h"
#include "support.h"
#include "train/checkpoint.h"
#include "train/run_directory.h"

static float values[6] = {1, 2, 3, 4, 5, 6};
static Tensor tensor = {.name = (char[]){"w"},
                        .type = TENSOR_F32,
                        .rank = 2,
                        .shape = {2, 3},
                        .data = values,
                        .bytes = sizeof values};

/* What a checkpoint of that step holds here; the tokenizer is a directory with one file. */
static CheckpointContents make(int64_t step) {
    static json_t *config, *state;
    static const char *tokenizer;
    if (!config) {
        Error error;
        config = json_pack("{s:s}", "model_type", "llama");
        state = json_pack("{s:i}", "sample", 12);
        tokenizer = test_path("tokenizer");
        assert_done(directory_create(tokenizer, &error), error);
        assert_done(file_write(test_path("tokenizer/tokenizer.json"), "{}", 2, &error), error);
    }
    return (CheckpointContents){.step = step,
                                .model = &tensor,
                                .model_count = 1,
                                .optimizer = &tensor,
                                .optimizer_count = 1,
                                .config = config,
                                .generation = config,
                                .state = state,
                                .tokenizer = tokenizer};
}

static void write_step(const char *checkpoints, int64_t step) {
    Error error;
    CheckpointContents contents = make(step);
    assert_done(checkpoint_write(checkpoints, &contents, &error), error);
}

/* An empty directory for checkpoints. */
static const char *fresh(const char *name) {
    Error error;
    const char *path = test_path(name);
    assert_done(directory_remove(path, &error), error);
    assert_done(directory_create(path, &error), error);
    return path;
}

static const char *inside(const char *checkpoints, const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", checkpoints, name);
    return path;
}

/* The step of the newest whole checkpoint. */
static int64_t latest(const char *checkpoints) {
    Error error;
    char *path = checkpoints_latest(checkpoints, &error);
    assert_done(path != NULL, error);
    int64_t step = checkpoint_step(strrchr(path, '/') + 1);
    free(path);
    return step;
}

static void names_and_steps(void **state) {
    (void)state;
    char name[CHECKPOINT_NAME];
    assert_string_equal(checkpoint_name(name, 1000), "step-00001000");
    assert_int_equal(checkpoint_step("step-00001000"), 1000);
    const char *const others[] = {"step-1000",
                                  "step-00001000.tmp",
                                  ".step-00001000.tmp",
                                  "step--0000001",
                                  "step-",
                                  "step-99999999999999999999",
                                  "other"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(checkpoint_step(others[i]), -1);
}

static void what_was_written_is_read(void **state) {
    (void)state;
    const char *checkpoints = fresh("written");
    write_step(checkpoints, 5);
    const char *path = inside(checkpoints, "step-00000005");
    Checkpoint checkpoint;
    Error error;
    assert_done(checkpoint_verify(path, true, &error), error);
    assert_done(checkpoint_open(&checkpoint, path, CHECKPOINT_RESUME, &error), error);
    assert_memory_equal(safetensors_find(&checkpoint.model, "w")->data, values, sizeof values);
    assert_memory_equal(safetensors_find(&checkpoint.optimizer, "w")->data, values, sizeof values);
    assert_int_equal(json_integer_value(json_object_get(checkpoint.state, "sample")), 12);
    checkpoint_close(&checkpoint);
    assert_true(path_exists(inside(checkpoints, "step-00000005/tokenizer.json")));
    assert_false(path_exists(inside(checkpoints, "step-00000005/tokenizer_config.json")));
    assert_true(path_exists(inside(checkpoints, "step-00000005/generation_config.json")));
    assert_false(path_exists(inside(checkpoints, ".step-00000005.tmp")));
}

static void a_plain_model_directory_gives_weights_but_no_resume(void **state) {
    (void)state;
    const char *path = fresh("plain");
    Checkpoint checkpoint;
    Error error;
    assert_fails_with(checkpoint_open(&checkpoint, path, CHECKPOINT_WEIGHTS, &error), error,
                      "model.safetensors");
    assert_done(file_write(inside(path, "model.safetensors.index.json"), "{}", 2, &error), error);
    assert_fails_with(checkpoint_open(&checkpoint, path, CHECKPOINT_WEIGHTS, &error), error,
                      "split over several files");
    assert_done(
        safetensors_write(inside(path, "model.safetensors"), &tensor, 1, NULL, NULL, &error),
        error);
    assert_done(checkpoint_open(&checkpoint, path, CHECKPOINT_WEIGHTS, &error), error);
    assert_int_equal(checkpoint.model.count, 1);
    assert_null(checkpoint.state);
    checkpoint_close(&checkpoint);
    assert_fails_with(checkpoint_open(&checkpoint, path, CHECKPOINT_RESUME, &error), error,
                      "cannot be resumed");
    assert_fails_with(checkpoint_open(&checkpoint, test_path("absent"), CHECKPOINT_WEIGHTS, &error),
                      error, "no such directory");
}

static void flip_a_byte(const char *path) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, -1, SEEK_END);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_END);
    fputc(byte ^ 1, file);
    assert_int_equal(fclose(file), 0);
}

static void damage_is_found_and_the_one_before_is_used(void **state) {
    (void)state;
    const char *checkpoints = fresh("damaged");
    Error error;
    Checkpoint checkpoint;
    for (int64_t step = 1; step <= 4; step++) write_step(checkpoints, step);
    flip_a_byte(inside(checkpoints, "step-00000004/model.safetensors"));
    const char *path = inside(checkpoints, "step-00000004");
    assert_done(checkpoint_verify(path, false, &error), error);
    assert_fails_with(checkpoint_verify(path, true, &error), error, "model.safetensors is damaged");

    assert_int_equal(truncate(inside(checkpoints, "step-00000003/train_state.json"), 3), 0);
    path = inside(checkpoints, "step-00000003");
    assert_fails_with(checkpoint_open(&checkpoint, path, CHECKPOINT_WEIGHTS, &error), error,
                      "3 bytes");
    assert_int_equal(unlink(inside(checkpoints, "step-00000002/optimizer.safetensors")), 0);
    assert_int_equal(latest(checkpoints), 1);
    write_step(checkpoints, 4); /* a damaged one is replaced */
    assert_int_equal(latest(checkpoints), 4);
}

static void a_whole_checkpoint_of_the_step_is_left_alone(void **state) {
    (void)state;
    const char *checkpoints = fresh("twice");
    struct stat first, second;
    write_step(checkpoints, 4);
    assert_int_equal(stat(inside(checkpoints, "step-00000004"), &first), 0);
    write_step(checkpoints, 4);
    assert_int_equal(stat(inside(checkpoints, "step-00000004"), &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
}

static void hostile_manifests_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *manifest, *message;
    } cases[] = {
        {"[]", "object"},
        {"{}", "does not list"},
        {"{\"files\":{\"config.json\":1}}", "does not list"},
        {"{\"files\":{\"model.safetensors\":{},\"config.json\":{}}}", "sha256"},
        {"{\"files\":{\"../x\":{},\"model.safetensors\":{},\"config.json\":{}}}",
         "plain file name"},
        {"{\"files\":{\"..\":{\"bytes\":0,\"sha256\":\"\"},\"model.safetensors\":{},"
         "\"config.json\":{}}}",
         "bytes"},
        {"{\"files\":{\"model.safetensors\":{\"bytes\":-1,\"sha256\":\"\"},\"config.json\":{}}}",
         "bytes"},
    };
    const char *checkpoints = fresh("hostile");
    write_step(checkpoints, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error error;
        assert_done(file_write(inside(checkpoints, "step-00000001/manifest.json"),
                               cases[i].manifest, strlen(cases[i].manifest), &error),
                    error);
        assert_fails_with(checkpoint_verify(inside(checkpoints, "step-00000001"), true, &error),
                          error, cases[i].message);
    }
}

static void a_step_too_large_for_its_name_is_refused(void **state) {
    (void)state;
    Error error;
    CheckpointContents contents = make(100000000);
    assert_fails_with(checkpoint_write(fresh("large"), &contents, &error), error, "99999999");
}

/* Fails the 1st, 2nd, … call of writing step 2 until a write succeeds. After each failure step 1
 * or, when only making it durable failed, step 2 is the newest whole one, and no temporary file is
 * left. */
static void fail_every_call(FaultEffect effect) {
    const char *checkpoints = fresh("faults");
    write_step(checkpoints, 1);
    CheckpointContents contents = make(2);
    Error error;
    int64_t call = 1;
    for (;; call++) {
        faults_arm(FAULTS_ALL, effect, call);
        bool done = checkpoint_write(checkpoints, &contents, &error);
        if (!faults_disarm()) {
            assert_done(done, error);
            break;
        }
        int64_t newest = latest(checkpoints);
        assert_true(newest == 1 || newest == 2);
        if (done) assert_int_equal(newest, 2);
        assert_false(path_exists(inside(checkpoints, ".step-00000002.tmp")));
        assert_done(directory_remove(inside(checkpoints, "step-00000002"), &error), error);
    }
    assert_int_equal(latest(checkpoints), 2);
    assert_true(call > 50);
}

static void any_call_may_fail_once(void **state) {
    (void)state;
    fail_every_call(FAULT_ONCE);
}

static void any_call_may_fail_and_all_after_it(void **state) {
    (void)state;
    fail_every_call(FAULT_LASTING);
}

static void the_process_may_be_killed_at_any_call(void **state) {
    (void)state;
    const char *run_path = fresh("killed"), *checkpoints = test_path("killed/checkpoints");
    Error error;
    assert_done(directory_create(checkpoints, &error), error);
    write_step(checkpoints, 1);
    CheckpointContents contents = make(2);
    for (int64_t call = 1;; call++) {
        pid_t child = fork();
        if (child == 0) {
            faults_arm(FAULTS_FILES, FAULT_KILL, call);
            _exit(checkpoint_write(checkpoints, &contents, &error) ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        int64_t newest = latest(checkpoints);
        if (WEXITSTATUS(status) == 0) {
            assert_int_equal(newest, 2);
            assert_true(call > 20);
            break;
        }
        assert_int_equal(WEXITSTATUS(status), FAULT_KILL_STATUS);
        assert_true(newest == 1 || newest == 2);
        RunDirectory run; /* opening the run again clears what is left */
        assert_done(run_directory_open(&run, run_path, &error), error);
        run_directory_close(&run);
        assert_false(path_exists(inside(checkpoints, ".step-00000002.tmp")));
        assert_done(directory_remove(inside(checkpoints, "step-00000002"), &error), error);
    }
}

/* Exhausted memory may also go unnoticed: jansson's lexer then drops a byte, here of a checksum
 * that is not compared. It must do no harm. */
static void any_call_of_reading_may_fail(void **state) {
    (void)state;
    static const int functions[] = {FAULTS_FILES, FAULTS_MEMORY};
    const char *checkpoints = fresh("read");
    write_step(checkpoints, 1);
    const char *path = inside(checkpoints, "step-00000001");
    bool reached = true;
    for (int i = 0; i < 2; i++, reached = true)
        for (int64_t call = 1; reached; call++) {
            Checkpoint checkpoint;
            Error error;
            faults_arm(functions[i], FAULT_ONCE, call);
            bool done = checkpoint_open(&checkpoint, path, CHECKPOINT_RESUME, &error);
            reached = faults_disarm();
            assert_true(reached || done);
            if (functions[i] == FAULTS_FILES) assert_int_equal(done, !reached);
            if (done) checkpoint_close(&checkpoint);
        }
}

int main(void) {
    test_directory();
    log_set_quiet(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_steps),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_plain_model_directory_gives_weights_but_no_resume),
        cmocka_unit_test(damage_is_found_and_the_one_before_is_used),
        cmocka_unit_test(a_whole_checkpoint_of_the_step_is_left_alone),
        cmocka_unit_test(hostile_manifests_are_refused),
        cmocka_unit_test(a_step_too_large_for_its_name_is_refused),
        cmocka_unit_test(any_call_may_fail_once),
        cmocka_unit_test(any_call_may_fail_and_all_after_it),
        cmocka_unit_test(the_process_may_be_killed_at_any_call),
        cmocka_unit_test(any_call_of_reading_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
