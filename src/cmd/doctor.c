/* hearth doctor: whether this machine is ready to train, and the remedy for what is not. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/checks.h"
#include "cmd/options.h"
#include "cmd/verbs.h"

static const Command command = {
    .name = "doctor",
    .summary = "Is this machine ready to train? What is not, and the remedy.",
    .usage = "hearth doctor [--run-dir DIR]",
    .details =
        "Looks at the processor (instructions, memory, huge pages), the disk that runs will "
        "be on, limits, and\n"
        "the GPU: driver, chip, memory, kernels, libraries, temperature, power. Each line is "
        "'ok', a note that\n"
        "something could be better, or 'FIX'. Without a GPU hearth trains on the CPU; "
        "'hearth plan' says how\n"
        "fast either is. Exit status 0: ready, 1: something must be put right.\n\n"
        "Example:\n"
        "  hearth doctor --run-dir /data/runs",
};

Check *checks_add(Checks *checks, const char *group, const char *name, const char *format, ...) {
    Check *check = &checks->rows[checks->count++];
    *check = (Check){.group = group, .name = name};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->found, sizeof check->found, format, arguments);
    va_end(arguments);
    return check;
}

void check_advise(Check *check, CheckState state, const char *format, ...) {
    check->state = state;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->remedy, sizeof check->remedy, format, arguments);
    va_end(arguments);
}

static bool is_ready(const Checks *checks) {
    for (int i = 0; i < checks->count; i++)
        if (checks->rows[i].state == CHECK_FIX) return false;
    return true;
}

static void print_text(const Checks *checks, bool gpu) {
    static const char *const words[] = {
        [CHECK_GOOD] = "ok", [CHECK_NOTE] = "note", [CHECK_FIX] = "FIX"};
    const char *group = "";
    for (int i = 0; i < checks->count; i++) {
        const Check *check = &checks->rows[i];
        if (strcmp(group, check->group) != 0) puts(group = check->group);
        printf("  %-5s %-14s %s\n", words[check->state], check->name, check->found);
        if (*check->remedy) printf("  %-5s %-14s %s\n", "", "", check->remedy);
    }
    if (is_ready(checks))
        printf("Ready to train on the %s.\n", gpu ? "GPU" : "CPU");
    else
        printf("Not ready: put right what is marked FIX.\n");
}

static json_t *gpu_json(const CudaReport *report) {
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"capability", report->capability},   {"memory", report->memory},
                   {"memory_free", report->memory_free}, {"cuda", report->cuda},
                   {"cublaslt", report->cublaslt},       {"nccl", report->nccl},
                   {"temperature", report->temperature}, {"power", report->power},
                   {"power_limit", report->power_limit}, {"power_default", report->power_default}};
    json_t *json = json_object();
    json_object_set_new(json, "name", json_string(report->gpu));
    json_object_set_new(json, "driver", json_string(report->driver_version));
    json_object_set_new(json, "slowed", json_string(report->slowed));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(json, numbers[i].key,
                            numbers[i].value < 0 ? json_null() : json_integer(numbers[i].value));
    return json;
}

static void print_json(const Checks *checks, const CudaReport *report) {
    static const char *const states[] = {
        [CHECK_GOOD] = "ok", [CHECK_NOTE] = "note", [CHECK_FIX] = "fix"};
    json_t *json = json_object(), *rows = json_array();
    for (int i = 0; i < checks->count; i++) {
        const Check *check = &checks->rows[i];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:s}", "group", check->group,
                                              "name", check->name, "state", states[check->state],
                                              "found", check->found, "remedy", check->remedy));
    }
    json_object_set_new(json, "ready", json_boolean(is_ready(checks)));
    json_object_set_new(json, "device", json_string(report->usable ? "cuda" : "cpu"));
    json_object_set_new(json, "gpu", report->driver ? gpu_json(report) : json_null());
    json_object_set_new(json, "checks", rows);
    char *text = json_dumps(json, JSON_INDENT(2));
    if (text) puts(text);
    free(text);
    json_decref(json);
}

int verb_doctor(int argc, char **argv) {
    const char *run_directory = "runs";
    Option options[] = {{.name = "run-dir",
                         .kind = OPTION_TEXT,
                         .value = &run_directory,
                         .argument = "DIR",
                         .help = "where runs will go: its disk is looked at"},
                        {0}};
    Error error;
    int words;
    ParseResult parsed = options_parse(&command, options, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (words) {
        fail(&error, "'%s' is not an option", argv[0]);
        return command_misused(&command, &error);
    }
    static CudaReport report;
    static Checks checks;
    cuda_report(&report);
    check_processor(&checks);
    check_disk(&checks, run_directory);
    check_limits(&checks);
    check_gpu(&checks, &report);
    if (options_json())
        print_json(&checks, &report);
    else
        print_text(&checks, report.usable);
    return is_ready(&checks) ? EXIT_SUCCESS : EXIT_FAILURE;
}
