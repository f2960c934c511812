/* hearth eval and hearth generate as they are called. */
#include <stdio.h>
#include <sys/wait.h>

#include "base/json.h"
#include "make_model.h"

static const char *model, *text;

static int save_files(void **state) {
    (void)state;
    Error error;
    ModelConfig config = small_model(64);
    model = save_model("model", &config, true);
    text = test_path("text.txt");
    assert_done(file_write(text, sample_text, strlen(sample_text), &error), error);
    return 0;
}

/* Runs "hearth ARGUMENTS" in the tests' directory and keeps what comes out of it; returns the exit
 * status. */
static int run(const char *arguments, char output[8192]) {
    char command[2048];
    snprintf(command, sizeof command, "cd '%s' && '%s' 2>&1 %s", test_directory(), HEARTH_BINARY,
             arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t size = fread(output, 1, 8191, pipe);
    output[size] = 0;
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static json_t *run_json(const char *arguments) {
    Error error;
    char output[8192];
    if (run(arguments, output)) fail_msg("hearth %s: %s", arguments, output);
    json_t *json = json_read_bytes("the output", output, strlen(output), &error);
    assert_done(json != NULL, error);
    return json;
}

/* The exit status, and a part of what is said. */
static void assert_says(const char *arguments, int status, const char *message) {
    char output[8192];
    assert_int_equal(run(arguments, output), status);
    if (!strstr(output, message)) fail_msg("hearth %s: no '%s' in: %s", arguments, message, output);
}

static void test_eval_json(void **state) {
    (void)state;
    Error error;
    double loss, bpb;
    int64_t tokens, bytes;
    json_t *json = run_json("eval --checkpoint model text.txt --json --quiet --precision fp32");
    assert_done(json_get_number(json, "loss", &loss, &error), error);
    assert_done(json_get_number(json, "bpb", &bpb, &error), error);
    assert_done(json_get_integer(json, "tokens", 1, INT64_MAX, &tokens, &error), error);
    assert_done(json_get_integer(json, "bytes", 1, INT64_MAX, &bytes, &error), error);
    assert_int_equal(bytes, strlen(sample_text));
    assert_true(loss > 0 && bpb > 0 && tokens < bytes);
    json_decref(json);
}

static void test_eval_reads_standard_input(void **state) {
    (void)state;
    json_t *file = run_json("eval --checkpoint model text.txt --json --quiet");
    json_t *piped = run_json("eval --checkpoint model - --json --quiet < text.txt");
    assert_true(json_equal(file, piped));
    json_decref(file);
    json_decref(piped);
}

static void test_eval_refuses(void **state) {
    (void)state;
    char *path = path_join(test_directory(), "empty.txt", &(Error){0});
    assert_true(file_write(path, "", 0, &(Error){0}));
    free(path);
    assert_says("eval text.txt", 2, "--checkpoint DIR is needed");
    assert_says("eval --checkpoint model", 2, "nothing to evaluate");
    assert_says("eval --checkpoint model --data d text.txt", 2, "not several");
    assert_says("eval --checkpoint nowhere text.txt", 1, "nowhere is no checkpoint");
    assert_says("eval --checkpoint model missing.txt", 1, "missing.txt");
    assert_says("eval --checkpoint model empty.txt", 1, "empty.txt");
    assert_says("eval --checkpoint model --data .", 1, "data build");
    assert_says("eval --checkpoint model --core b text.txt", 2, "not several");
    assert_says("eval --checkpoint model --core b --tokens 3", 2, "do not go with --core");
    assert_says("eval --checkpoint model --data d --csv x", 2, "go with --core");
    assert_says("eval --checkpoint model --core nowhere", 1, "nowhere is not a directory");
    assert_says("eval --checkpoint model --core .", 1, "the data of none of the 22 tasks");
}

static void write_file(const char *name, const char *content) {
    Error error;
    assert_done(file_write(test_path(name), content, strlen(content), &error), error);
}

/* A bundle of nothing but the data of two of CORE's tasks. */
static void write_bundle(void) {
    Error error;
    assert_done(directory_create(test_path("bundle/eval_data/commonsense_reasoning"), &error),
                error);
    assert_done(directory_create(test_path("bundle/eval_data/language_understanding"), &error),
                error);
    write_file("bundle/eval_data/commonsense_reasoning/copa.jsonl",
               "{\"query\": \"the rain comes, so\", \"choices\": [\"the river rises\", \"the sea "
               "falls\"], \"gold\": 0}\n"
               "{\"query\": \"the sun comes, so\", \"choices\": [\"the rain\", \"the sea\"], "
               "\"gold\": 1}\n");
    write_file("bundle/eval_data/language_understanding/winogrande.jsonl",
               "{\"context_options\": [\"the sea\", \"the river\"], \"continuation\": \"is calm\", "
               "\"gold\": 1}\n");
}

static void test_eval_core(void **state) {
    (void)state;
    Error error;
    Bytes written = {0};
    write_bundle();
    json_t *json =
        run_json("eval --checkpoint model --core bundle --json --csv core.csv --core-details "
                 "details.jsonl 2> /dev/null");
    const json_t *tasks = json_object_get(json, "tasks"), *copa = json_array_get(tasks, 0);
    assert_int_equal(json_array_size(tasks), 2);
    assert_int_equal(json_array_size(json_object_get(json, "missing")), 20);
    assert_true(json_is_true(json_object_get(json, "partial")));
    assert_string_equal(json_string_value(json_object_get(copa, "task")), "copa");
    double accuracy, centered, other, core;
    assert_done(json_get_number(copa, "accuracy", &accuracy, &error), error);
    assert_done(json_get_number(copa, "centered", &centered, &error), error);
    assert_done(json_get_number(json_array_get(tasks, 1), "centered", &other, &error), error);
    assert_done(json_get_number(json, "core", &core, &error), error);
    assert_true(centered == (accuracy - 0.5) / 0.5 && core == (centered + other) / 2);
    json_decref(json);

    assert_done(file_read(test_path("core.csv"), 1 << 16, &written, &error), error);
    assert_non_null(strstr((char *)written.data, "\ncopa,0,2,"));
    assert_non_null(strstr((char *)written.data, "\nCORE (2 of 22 tasks),"));
    written.size = 0;
    assert_done(file_read(test_path("details.jsonl"), 1 << 16, &written, &error), error);
    assert_int_equal(
        strncmp((char *)written.data, "{\"task\":\"copa\",\"example\":0,\"line\":", 34), 0);
    bytes_free(&written);
    assert_says("eval --checkpoint model --core bundle --max-per-task 1", 0,
                "CORE of 2 of 22 tasks (partial)");
}

static void test_generate_json(void **state) {
    (void)state;
    Error error;
    const char *command =
        "generate --checkpoint model --prompt 'the sea' --max-tokens 20 --seed 3 --json "
        "--quiet --temperature 1.5";
    json_t *first = run_json(command), *again = run_json(command);
    assert_true(json_equal(first, again));
    assert_non_null(json_get_string(first, "text", &error));
    size_t count = json_array_size(json_object_get(first, "token_ids"));
    assert_true(count > 0 && count <= 20);
    json_decref(first);
    json_decref(again);
}

static void test_generate_from_standard_input(void **state) {
    (void)state;
    char with_option[8192], piped[8192];
    assert_int_equal(run("generate --checkpoint model --prompt 'the sea' --quiet", with_option), 0);
    assert_int_equal(run("generate --checkpoint model --quiet << END\nthe sea\nEND\n", piped), 0);
    assert_memory_equal(with_option, "the sea", 7);
    assert_string_equal(with_option, piped);
}

static void test_generate_stops(void **state) {
    (void)state;
    Error error;
    json_t *whole =
        run_json("generate --checkpoint model --prompt 'the sea' --json --quiet --seed 1");
    const char *all = json_get_string(whole, "text", &error);
    size_t length = strlen(all), at = 0;
    while (at < length && !(all[at] >= 'a' && all[at] <= 'z')) at++;
    assert_true(at < length);
    char command[256];
    snprintf(command, sizeof command,
             "generate --checkpoint model --prompt 'the sea' --json --quiet --seed 1 --stop %c",
             all[at]);
    json_t *stopped = run_json(command);
    const char *part = json_get_string(stopped, "text", &error);
    assert_int_equal(strlen(part), at);
    assert_memory_equal(part, all, at);
    json_decref(whole);
    json_decref(stopped);
}

static void test_generate_refuses(void **state) {
    (void)state;
    assert_says("generate --prompt a", 2, "--checkpoint DIR is needed");
    assert_says("generate --checkpoint model --prompt a b", 2, "quote the prompt");
    assert_says("generate --checkpoint model --prompt a --stop ''", 2, "--stop");
    assert_says("generate --checkpoint model --prompt a --top-p 2", 2, "--top-p");
    assert_says("generate --checkpoint model --quiet < text.txt", 1, "shorten the prompt");
    assert_says("generate --checkpoint model --prompt a > /dev/full", 1, "No space left");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eval_json),      cmocka_unit_test(test_eval_reads_standard_input),
        cmocka_unit_test(test_eval_refuses),   cmocka_unit_test(test_eval_core),
        cmocka_unit_test(test_generate_json),  cmocka_unit_test(test_generate_from_standard_input),
        cmocka_unit_test(test_generate_stops), cmocka_unit_test(test_generate_refuses),
    };
    return cmocka_run_group_tests(tests, save_files, NULL);
}
