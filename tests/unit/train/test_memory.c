/* The process's peak resident memory is what the memory table said, within 5%. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "support.h"

enum { WORDS = 60000 };

static const char *write_text(void) {
    Error error;
    Bytes text = {0};
    const char *path = test_path("text.txt");
    static const char *const words[] = {"river", "stone", "walks",  "under",
                                        "a",     "the",   "bright", "sky"};
    for (uint64_t i = 0; i < WORDS; i++)
        assert_done(bytes_format(&text, &error, "%s ", words[random_below(1, 2, i, 8)]), error);
    assert_done(file_write(path, text.data, text.size, &error), error);
    bytes_free(&text);
    return path;
}

/* Runs hearth with the words of `line`; returns its peak resident bytes, stdout goes to `out`. */
static int64_t run_hearth(const char *line, const char *out) {
    char command[2048];
    snprintf(command, sizeof command, "exec '%s' %s --quiet >'%s'", HEARTH_BINARY, line, out);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status;
    struct rusage usage;
    assert_true(wait4(child, &status, 0, &usage) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("failed: %s", command);
    return usage.ru_maxrss * 1024;
}

static void check_run(const char *line) {
    Error error;
    const char *out = test_path("result.json");
    double peak = (double)run_hearth(line, out);
    json_t *result = json_read_file(out, 1 << 16, &error);
    assert_done(result, error);
    double planned = json_number_value(json_object_get(result, "planned_bytes"));
    json_decref(result);
    print_message("%.100s: planned %.1f MiB, peak %.1f MiB (%+.1f%%)\n", line, planned / 0x1p20,
                  peak / 0x1p20, 100 * (peak / planned - 1));
    assert_true(peak > 0.95 * planned && peak < 1.05 * planned);
}

/* A fresh run, and one that reads its checkpoint back. */
static void check_model(const char *options) {
    Error error;
    char line[1024];
    const char *run = test_path("run");
    assert_done(directory_remove(run, &error), error);
    snprintf(line, sizeof line,
             "train %s --json --data %s --run-dir %s --steps 4 --eval-every 2 --sample-every 4",
             options, test_path("data"), run);
    check_run(line);
    snprintf(line, sizeof line, "train --json --run-dir %s --resume --steps 5", run);
    check_run(line);
}

static void test_three_sizes(void **state) {
    (void)state;
    char line[1024];
    const char *text = write_text(), *tokenizer = test_path("tokenizer");
    snprintf(line, sizeof line, "tokenizer train --vocab 270 --pattern gpt4 --out %s %s", tokenizer,
             text);
    run_hearth(line, "/dev/null");
    snprintf(line, sizeof line, "data build --tokenizer %s/tokenizer.json --out %s %s", tokenizer,
             test_path("data"), text);
    run_hearth(line, "/dev/null");
    check_model("--model llama-15m --vocab 32000 --seq-len 128 --batch-tokens 2048");
    check_model(
        "--model llama-42m --seq-len 256 --batch-tokens 1024 --recompute layer --precision fp32");
    check_model(
        "--model llama-110m --seq-len 128 --batch-tokens 512 --optimizer-state 8bit --vocab 8000");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_three_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
