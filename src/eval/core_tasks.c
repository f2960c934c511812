/* What is known of CORE without its bundle, and the two files of the bundle that say it better. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "eval/core_bundle.h"

enum { YAML_BYTES = 1 << 20, CSV_BYTES = 1 << 24 };

const char *core_type_name(CoreType type) {
    static const char *const names[] = {"multiple_choice", "schema", "language_modeling"};
    return names[type];
}

#define LANGUAGE "language_understanding/"
#define KNOWLEDGE "world_knowledge/"
#define REASONING "commonsense_reasoning/"
#define SYMBOLIC "symbolic_problem_solving/"
#define READING "reading_comprehension/"
#define ANSWER "\nAnswer: "

/* DCLM's 22 tasks of low variance (arXiv 2406.11794), with the baselines that nanochat uses. */
static const CoreTask standard[] = {
    {"hellaswag_zeroshot", LANGUAGE "hellaswag.jsonl", " ", CORE_MULTIPLE_CHOICE, 0, 25},
    {"jeopardy", KNOWLEDGE "jeopardy_all.jsonl", ANSWER, CORE_LANGUAGE_MODELING, 10, 0},
    {"bigbench_qa_wikidata", KNOWLEDGE "bigbench_qa_wikidata.jsonl", " ", CORE_LANGUAGE_MODELING,
     10, 0},
    {"arc_easy", KNOWLEDGE "arc_easy.jsonl", ANSWER, CORE_MULTIPLE_CHOICE, 10, 25},
    {"arc_challenge", KNOWLEDGE "arc_challenge.jsonl", ANSWER, CORE_MULTIPLE_CHOICE, 10, 25},
    {"copa", REASONING "copa.jsonl", " ", CORE_MULTIPLE_CHOICE, 0, 50},
    {"commonsense_qa", REASONING "commonsense_qa.jsonl", " ", CORE_MULTIPLE_CHOICE, 10, 20},
    {"piqa", REASONING "piqa.jsonl", ANSWER, CORE_MULTIPLE_CHOICE, 10, 50},
    {"openbook_qa", REASONING "openbook_qa.jsonl", " ", CORE_MULTIPLE_CHOICE, 0, 25},
    {"lambada_openai", LANGUAGE "lambada_openai.jsonl", " ", CORE_LANGUAGE_MODELING, 0, 0},
    {"hellaswag", LANGUAGE "hellaswag.jsonl", " ", CORE_MULTIPLE_CHOICE, 10, 25},
    {"winograd", LANGUAGE "winograd_wsc.jsonl", " ", CORE_SCHEMA, 0, 50},
    {"winogrande", LANGUAGE "winogrande.jsonl", " ", CORE_SCHEMA, 0, 50},
    {"bigbench_dyck_languages", SYMBOLIC "bigbench_dyck_languages.jsonl", " ",
     CORE_LANGUAGE_MODELING, 10, 0},
    {"agi_eval_lsat_ar", SYMBOLIC "agi_eval_lsat_ar.jsonl", " ", CORE_MULTIPLE_CHOICE, 3, 20},
    {"bigbench_cs_algorithms", SYMBOLIC "bigbench_cs_algorithms.jsonl", " ", CORE_LANGUAGE_MODELING,
     10, 0},
    {"bigbench_operators", SYMBOLIC "bigbench_operators.jsonl", " ", CORE_LANGUAGE_MODELING, 10, 0},
    {"bigbench_repeat_copy_logic", SYMBOLIC "bigbench_repeat_copy_logic.jsonl", " ",
     CORE_LANGUAGE_MODELING, 10, 0},
    {"squad", READING "squad.jsonl", " ", CORE_LANGUAGE_MODELING, 10, 0},
    {"coqa", READING "coqa.jsonl", " ", CORE_LANGUAGE_MODELING, 0, 0},
    {"boolq", READING "boolq.jsonl", ANSWER, CORE_MULTIPLE_CHOICE, 10, 62},
    {"bigbench_language_identification", LANGUAGE "bigbench_language_identification.jsonl", " ",
     CORE_MULTIPLE_CHOICE, 10, 9.1},
};

enum { STANDARD_TASKS = sizeof standard / sizeof *standard };

bool core_tasks_standard(CoreTasks *tasks, Error *error) {
    if (!reserve(&tasks->tasks, &tasks->capacity, STANDARD_TASKS, sizeof *tasks->tasks, error))
        return false;
    memcpy(tasks->tasks, standard, sizeof standard);
    tasks->count = STANDARD_TASKS;
    return true;
}

typedef bool ReadFile(CoreTasks *tasks, const char *path, const void *text, size_t size,
                      Error *error);

/* *found is false when there is no such file. */
static bool read_if_any(CoreTasks *tasks, const char *directory, const char *name, size_t limit,
                        ReadFile *read, bool *found, Error *error) {
    char *path = path_join(directory, name, error);
    Bytes text = {0};
    *found = path && path_exists(path);
    bool done = path && (!*found || (file_read(path, limit, &text, error) &&
                                     read(tasks, path, text.data, text.size, error)));
    bytes_free(&text);
    free(path);
    return done;
}

static bool check_baselines(const CoreTasks *tasks, const char *directory, Error *error) {
    for (size_t i = 0; i < tasks->count; i++)
        if (isnan(tasks->tasks[i].baseline))
            return fail(error,
                        "%s/eval_meta_data.csv has no row with the baseline of task '%s'; add one",
                        directory, tasks->tasks[i].label);
    return true;
}

/* Of tasks that core.yaml lists, when there is no table of baselines beside it. */
static void standard_baselines(CoreTasks *tasks) {
    for (size_t i = 0; i < tasks->count; i++)
        for (size_t j = 0; j < STANDARD_TASKS; j++)
            if (!strcmp(tasks->tasks[i].label, standard[j].label))
                tasks->tasks[i].baseline = standard[j].baseline;
}

bool core_tasks_read(CoreTasks *tasks, const char *directory, Error *error) {
    bool listed, rated;
    *tasks = (CoreTasks){0};
    if (!path_is_directory(directory))
        return fail(error,
                    "%s is not a directory; an evaluation bundle holds core.yaml, "
                    "eval_meta_data.csv and eval_data",
                    directory);
    bool done = read_if_any(tasks, directory, "core.yaml", YAML_BYTES, core_tasks_from_yaml,
                            &listed, error) &&
                (listed || core_tasks_standard(tasks, error));
    /* A table that is there decides alone. */
    for (size_t i = 0; done && i < tasks->count; i++) tasks->tasks[i].baseline = NAN;
    done = done && read_if_any(tasks, directory, "eval_meta_data.csv", CSV_BYTES,
                               core_baselines_from_csv, &rated, error);
    if (done && !rated) standard_baselines(tasks);
    if (done && check_baselines(tasks, directory, error)) return true;
    free(tasks->tasks);
    *tasks = (CoreTasks){0};
    return false;
}
