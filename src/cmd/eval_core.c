#include "cmd/eval_core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "eval/core.h"

/* Every example's outcome as a line of JSON. */
static bool write_example(void *context, const CoreSet *set, size_t index,
                          const CoreOutcome *outcome, Error *error) {
    Bytes line = {0};
    bool choosing = set->task.type != CORE_LANGUAGE_MODELING;
    json_t *losses = json_array();
    for (size_t i = 0; i < outcome->choices; i++)
        json_array_append_new(losses, isnan(outcome->losses[i]) ? json_null()
                                                                : json_real(outcome->losses[i]));
    json_t *json = json_pack("{s:s, s:I, s:I, s:b, s:o, s:o*}", "task", set->task.label, "example",
                             (json_int_t)index, "line", (json_int_t)set->examples[index].line,
                             "correct", outcome->correct, "losses", losses, "answer",
                             choosing ? json_integer((json_int_t)outcome->answer) : NULL);
    bool done = json ? json_to_text(&line, json, JSON_COMPACT, error) &&
                           bytes_append(&line, "\n", 1, error) &&
                           file_writer_write(context, line.data, line.size, error)
                     : fail(error, "out of memory writing an example's outcome");
    json_decref(json);
    bytes_free(&line);
    return done;
}

static bool evaluate(const Core *core, const Inference *inference, const char *details,
                     CoreReport *report, Error *error) {
    CoreWatcher watcher = {.example = write_example};
    if (details && !(watcher.context = file_writer_open(details, error))) return false;
    bool done = core_evaluate(core, inference, details ? &watcher : NULL, report, error);
    if (!details) return done;
    if (done) return file_writer_commit(watcher.context, NULL, error);
    file_writer_discard(watcher.context);
    return false;
}

static json_t *missing_tasks(const Core *core) {
    json_t *list = json_array();
    for (size_t i = 0; i < core->count; i++)
        if (!core->sets[i].count)
            json_array_append_new(list, json_string(core->sets[i].task.label));
    return list;
}

static json_t *task_result(const CoreSet *set, const CoreResult *result) {
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:f, s:f, s:f, s:f}", "task", set->task.label,
                     "type", core_type_name(set->task.type), "shots", set->task.shots, "examples",
                     (json_int_t)set->count, "correct", (json_int_t)result->correct, "accuracy",
                     result->accuracy, "baseline", set->task.baseline / 100, "centered",
                     result->centered, "seconds", result->seconds);
}

static bool print_json(const Core *core, const CoreReport *report, Error *error) {
    json_t *tasks = json_array();
    for (size_t i = 0; i < core->count; i++)
        if (core->sets[i].count)
            json_array_append_new(tasks, task_result(&core->sets[i], &report->tasks[i]));
    json_t *root = json_pack("{s:f, s:b, s:o, s:o, s:f}", "core", report->core, "partial",
                             core->present < core->count, "missing", missing_tasks(core), "tasks",
                             tasks, "seconds", report->seconds);
    bool done = root && !json_dumpf(root, stdout, 0);
    json_decref(root);
    putchar('\n');
    return done || fail(error, "out of memory writing the result");
}

static void print_table(const Core *core, const CoreReport *report) {
    printf("%-34s %5s %9s %9s %9s %9s\n", "task", "shots", "examples", "accuracy", "centered",
           "seconds");
    for (size_t i = 0; i < core->count; i++) {
        const CoreSet *set = &core->sets[i];
        const CoreResult *result = &report->tasks[i];
        if (set->count)
            printf("%-34s %5d %9zu %9.4f %9.4f %9.1f\n", set->task.label, set->task.shots,
                   set->count, result->accuracy, result->centered, result->seconds);
    }
    char name[96] = "CORE";
    if (core->present < core->count)
        snprintf(name, sizeof name, "CORE of %zu of %zu tasks (partial)", core->present,
                 core->count);
    printf("%-34s %5s %9s %9s %9.4f %9.1f\n", name, "", "", "", report->core, report->seconds);
}

/* A text as one field of CSV. */
static bool append_field(Bytes *out, const char *text, Error *error) {
    if (!strpbrk(text, ",\"\r\n")) return bytes_append(out, text, strlen(text), error);
    bool done = bytes_append(out, "\"", 1, error);
    for (; done && *text; text++)
        done = bytes_append(out, text, 1, error) &&
               (*text != '"' || bytes_append(out, text, 1, error));
    return done && bytes_append(out, "\"", 1, error);
}

static bool write_csv(const char *path, const Core *core, const CoreReport *report, Error *error) {
    Bytes text = {0};
    bool done =
        bytes_format(&text, error, "task,shots,examples,accuracy,baseline,centered,seconds\n");
    for (size_t i = 0; done && i < core->count; i++) {
        const CoreSet *set = &core->sets[i];
        const CoreResult *result = &report->tasks[i];
        if (set->count)
            done = append_field(&text, set->task.label, error) &&
                   bytes_format(&text, error, ",%d,%zu,%.6f,%.6f,%.6f,%.1f\n", set->task.shots,
                                set->count, result->accuracy, set->task.baseline / 100,
                                result->centered, result->seconds);
    }
    done = done &&
           bytes_format(&text, error, "CORE (%zu of %zu tasks),,,,,%.6f,%.1f\n", core->present,
                        core->count, report->core, report->seconds) &&
           file_write(path, text.data, text.size, error);
    bytes_free(&text);
    return done;
}

/* Says on stderr which tasks are left out. */
static bool report_missing(const Core *core, const char *bundle, Error *error) {
    Bytes names = {0};
    bool done = true;
    for (size_t i = 0; done && i < core->count; i++)
        if (!core->sets[i].count)
            done = bytes_format(&names, error, "%s%s", names.size ? ", " : "",
                                core->sets[i].task.label);
    if (done && names.size)
        log_warning("%s/eval_data lacks the data of %zu of %zu tasks, which are left out: %.*s",
                    bundle, core->count - core->present, core->count, (int)names.size,
                    (const char *)names.data);
    bytes_free(&names);
    return done;
}

/* The bundle in the tokens of a model, whose longest prompts it may ask. */
static bool open_core(Core *core, const char *directory, const EvalCoreOptions *options,
                      Error *error) {
    ModelConfig config;
    if (!model_config_load(&config, directory, error)) return false;
    Tokenizer *tokenizer = tokenizer_open(directory, error);
    const CoreSettings settings = {.examples = options->max_per_task,
                                   .sequence_length = config.sequence_length};
    bool done = tokenizer && core_open(core, options->bundle, tokenizer, &settings, error);
    tokenizer_free(tokenizer);
    return done;
}

static bool evaluate_checkpoint(const Core *core, const char *directory, const Backend *backend,
                                Dtype storage, const char *details, CoreReport *report,
                                Error *error) {
    CoreSizes sizes = core_sizes(core);
    const InferenceSettings settings = {.backend = backend,
                                        .context = sizes.context,
                                        .prefill = sizes.prefill,
                                        .score = sizes.score,
                                        .storage = storage};
    LoadedModel model;
    if (!model_open(&model, directory, &settings, error)) return false;
    bool done = evaluate(core, &model.inference, details, report, error);
    model_close(&model);
    return done;
}

bool eval_core(const char *directory, const Backend *backend, Dtype storage,
               const EvalCoreOptions *options, Error *error) {
    Core core;
    CoreReport report = {0};
    if (!open_core(&core, directory, options, error)) return false;
    bool done =
        report_missing(&core, options->bundle, error) &&
        evaluate_checkpoint(&core, directory, backend, storage, options->details, &report, error);
    if (done && options_json())
        done = print_json(&core, &report, error);
    else if (done)
        print_table(&core, &report);
    if (done && options->csv) done = write_csv(options->csv, &core, &report, error);
    core_report_free(&report);
    core_close(&core);
    return done &&
           (!(fflush(stdout) || ferror(stdout)) || fail_errno(error, "cannot write the result"));
}
