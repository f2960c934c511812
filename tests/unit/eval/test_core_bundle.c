/* The files of an evaluation bundle: what is read, and what is refused with its place. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "eval/core_bundle.h"

static const char whole_yaml[] =
    "# more than a hearth needs\n"
    "icl_tasks:\n"
    "-\n"
    "  label: one\n"
    "  dataset_uri: a/one.jsonl\n"
    "  num_fewshot: [10, 3]\n"
    "  icl_task_type: multiple_choice\n"
    "  continuation_delimiter: \"\\nAnswer: \" # a comment\n"
    "  has_categories: true\n"
    "- {label: two, dataset_uri: two.jsonl, num_fewshot: [0], icl_task_type: schema}\n"
    "- &three {label: 'three', dataset_uri: b/c.jsonl, num_fewshot: [64],\n"
    "   icl_task_type: language_modeling, continuation_delimiter: ''}\n";

static bool read_yaml(CoreTasks *tasks, const char *text, Error *error) {
    *tasks = (CoreTasks){0};
    return core_tasks_from_yaml(tasks, "core.yaml", text, strlen(text), error);
}

static void yaml_is_read(void **state) {
    (void)state;
    Error error;
    CoreTasks tasks;
    assert_done(read_yaml(&tasks, whole_yaml, &error), error);
    assert_int_equal(tasks.count, 3);
    const CoreTask *task = tasks.tasks;
    assert_string_equal(task[0].label, "one");
    assert_string_equal(task[0].data, "a/one.jsonl");
    assert_string_equal(task[0].delimiter, "\nAnswer: ");
    assert_int_equal(task[0].shots, 10);
    assert_int_equal(task[0].type, CORE_MULTIPLE_CHOICE);
    assert_true(isnan(task[0].baseline));
    assert_string_equal(task[1].delimiter, " ");
    assert_int_equal(task[1].type, CORE_SCHEMA);
    assert_string_equal(task[2].label, "three");
    assert_string_equal(task[2].delimiter, "");
    assert_int_equal(task[2].shots, 64);
    assert_int_equal(task[2].type, CORE_LANGUAGE_MODELING);
    free(tasks.tasks);
}

static void wrong_yaml_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *task, *message;
    } cases[] = {
        {"{label: x", "core.yaml:"},
        {"{dataset_uri: a, num_fewshot: [0], icl_task_type: schema}",
         "core.yaml:2: the task has no label"},
        {"{label: x, num_fewshot: [0], icl_task_type: schema}",
         "core.yaml:2: the task has no dataset_uri"},
        {"{label: x, dataset_uri: ../../x, num_fewshot: [0], icl_task_type: schema}",
         "'../../x' is not a path inside"},
        {"{label: x, dataset_uri: /etc/passwd, num_fewshot: [0], icl_task_type: schema}",
         "is not a path inside"},
        {"{label: x, dataset_uri: a, icl_task_type: schema}", "num_fewshot is not a list"},
        {"{label: x, dataset_uri: a, num_fewshot: 3, icl_task_type: schema}",
         "num_fewshot is not a list"},
        {"{label: x, dataset_uri: a, num_fewshot: [], icl_task_type: schema}",
         "num_fewshot is not a list"},
        {"{label: x, dataset_uri: a, num_fewshot: [65], icl_task_type: schema}",
         "'65' is not a number from 0 to 64"},
        {"{label: x, dataset_uri: a, num_fewshot: [-1], icl_task_type: schema}",
         "'-1' is not a number"},
        {"{label: x, dataset_uri: a, num_fewshot: [3x], icl_task_type: schema}",
         "'3x' is not a number"},
        {"{label: x, dataset_uri: a, num_fewshot: [[1]], icl_task_type: schema}",
         "num_fewshot is not a text"},
        {"{label: x, dataset_uri: a, num_fewshot: [0], icl_task_type: poetry}",
         "'poetry' is none of"},
        {"{label: x, dataset_uri: a, num_fewshot: [0]}", "the task has no icl_task_type"},
        {"{label: [x], dataset_uri: a, num_fewshot: [0], icl_task_type: schema}",
         "label is not a text"},
        {"{label: \"a\\0b\", dataset_uri: a, num_fewshot: [0], icl_task_type: schema}", "NUL byte"},
        {"{label: 'A234567890123456789012345678901234567890123456789012345678901234', dataset_uri: "
         "a, "
         "num_fewshot: [0], icl_task_type: schema}",
         "label is longer than 63 bytes"},
        {"{label: x, dataset_uri: a, num_fewshot: [0], icl_task_type: schema}\n"
         "- {label: x, dataset_uri: a, num_fewshot: [0], icl_task_type: schema}",
         "core.yaml:3: task 'x' is listed twice"},
        {"{label: x, dataset_uri: a, num_fewshot: [0], icl_task_type: schema,\n"
         "  continuation_delimiter: ' ', 'continuation_delimiter': ''}",
         "core.yaml:3: continuation_delimiter is given a second time"},
        {"{label: x, dataset_uri: a, num_fewshot: [0],\n  num_fewshot: [1], icl_task_type: schema}",
         "core.yaml:3: num_fewshot is given a second time"},
        {"{label: x, dataset_uri: a, num_fewshot: [0], icl_task_type: schema,\n  label: x}",
         "core.yaml:3: label is given a second time"},
        {"{label: x, dataset_uri: a, num_fewshot: [0], icl_task_type: schema}\nicl_tasks: []",
         "core.yaml:3: icl_tasks is given a second time"},
        {"just text", "core.yaml:2: the task has no label"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error error;
        Bytes text = {0};
        CoreTasks tasks = {0};
        assert_done(bytes_format(&text, &error, "icl_tasks:\n- %s\n", cases[i].task), error);
        assert_fails_with(core_tasks_from_yaml(&tasks, "core.yaml", text.data, text.size, &error),
                          error, cases[i].message);
        bytes_free(&text);
        free(tasks.tasks);
    }
    static const char *const no_list[] = {"", "x", "icl_tasks: x", "[icl_tasks]", "other: []"};
    for (size_t i = 0; i < sizeof no_list / sizeof *no_list; i++) {
        Error error;
        CoreTasks tasks;
        assert_fails_with(read_yaml(&tasks, no_list[i], &error), error,
                          "core.yaml has no list icl_tasks");
    }
}

static bool read_csv(CoreTasks *tasks, const char *text, Error *error) {
    return core_baselines_from_csv(tasks, "meta.csv", text, strlen(text), error);
}

static void csv_is_read(void **state) {
    (void)state;
    Error error;
    CoreTasks tasks;
    assert_done(read_yaml(&tasks, whole_yaml, &error), error);
    assert_done(read_csv(&tasks,
                         "Eval Task,\"De\"\"scription\"\"\r\n, long\",Random baseline,More\r\n"
                         "\r\n"
                         "one,\"a, \"\"b\"\"\n\n\",12.5,x\n"
                         "unknown,,25,\n"
                         "\"three\",z,\"9\".1\n"
                         "one,again,0",
                         &error),
                error);
    assert_true(tasks.tasks[0].baseline == 0); /* the last row counts */
    assert_true(isnan(tasks.tasks[1].baseline));
    assert_true(tasks.tasks[2].baseline == 9.1);
    free(tasks.tasks);
}

static void wrong_csv_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "meta.csv has no column 'Eval Task'"},
        {"Eval Task,Baseline\n", "meta.csv has no column 'Random baseline'"},
        {"Eval Task,Random baseline\n\none\n", "meta.csv:3: the row has 1 fields only"},
        {"Eval Task,Random baseline\none,\n", "meta.csv:2: the random baseline ''"},
        {"Eval Task,Random baseline\n\"o\n\ne\",1\none,x\n", "meta.csv:5: the random baseline 'x'"},
        {"Eval Task,Random baseline\none,100\n", "not a percentage below 100"},
        {"Eval Task,Random baseline\none,-1\n", "not a percentage below 100"},
        {"Eval Task,Random baseline\none,nan\n", "not a percentage below 100"},
        {"Eval Task,Random baseline\none,\"1\n", "meta.csv:2: a quote is not closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error error;
        CoreTasks tasks;
        assert_done(read_yaml(&tasks, whole_yaml, &error), error);
        assert_fails_with(read_csv(&tasks, cases[i].text, &error), error, cases[i].message);
        free(tasks.tasks);
    }
}

static bool read_items(CoreItems *items, CoreType type, const char *text, Error *error) {
    return core_items_read(items, type, "x.jsonl", text, strlen(text), error);
}

static void wrong_examples_are_refused(void **state) {
    (void)state;
    static const struct {
        CoreType type;
        const char *text, *message;
    } cases[] = {
        {CORE_SCHEMA, "", "x.jsonl holds no example"},
        {CORE_SCHEMA, " \n\r\n", "x.jsonl holds no example"},
        {CORE_SCHEMA, "\n\n{", "x.jsonl:3 is not valid JSON"},
        {CORE_SCHEMA, "[]", "x.jsonl:1 does not hold a JSON object"},
        {CORE_MULTIPLE_CHOICE, "{\"choices\": [\"a\"], \"gold\": 0}",
         "x.jsonl:1: \"query\" is missing"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": 1, \"choices\": [\"a\"], \"gold\": 0}",
         "\"query\" is not a string"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"gold\": 0}", "\"choices\" is missing"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"choices\": [], \"gold\": 0}",
         "not a list of 1 to 64"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"choices\": \"ab\", \"gold\": 0}",
         "not a list of 1 to 64"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"choices\": [\"a\", 2], \"gold\": 0}",
         "number 1 of \"choices\""},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"choices\": [\"a\"]}", "\"gold\" is missing"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"choices\": [\"a\"], \"gold\": 1}",
         "\"gold\" is 1; it must be from 0 to 0"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"choices\": [\"a\"], \"gold\": -1}",
         "\"gold\" is -1"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"q\", \"choices\": [\"a\"], \"gold\": \"0\"}",
         "\"gold\" is not a whole"},
        {CORE_SCHEMA, "{\"context_options\": [\"a\"], \"gold\": 0}", "\"continuation\" is missing"},
        {CORE_SCHEMA, "{\"continuation\": \"a\", \"gold\": 0}", "\"context_options\" is missing"},
        {CORE_LANGUAGE_MODELING, "{\"context\": \"a\"}", "\"continuation\" is missing"},
        {CORE_LANGUAGE_MODELING, "{\"context\": \"a\", \"continuation\": null}",
         "\"continuation\" is not a string"},
        {CORE_LANGUAGE_MODELING, "{\"context\": \"\xff\", \"continuation\": \"\"}",
         "x.jsonl:1 is not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error error;
        CoreItems items;
        assert_fails_with(read_items(&items, cases[i].type, cases[i].text, &error), error,
                          cases[i].message);
        core_items_free(&items);
    }
}

static void write_file(const char *name, const char *text) {
    Error error;
    assert_done(file_write(test_path(name), text, strlen(text), &error), error);
}

/* What core.yaml and eval_meta_data.csv say goes before what is known without them. */
static void bundles_decide(void **state) {
    (void)state;
    Error error;
    CoreTasks tasks;
    const char *directory = test_path("bundle");
    assert_fails_with(core_tasks_read(&tasks, directory, &error), error, "is not a directory");
    assert_done(directory_create(directory, &error), error);
    assert_done(core_tasks_read(&tasks, directory, &error), error);
    assert_int_equal(tasks.count, 22);
    assert_true(tasks.tasks[6].baseline == 20); /* commonsense_qa */
    free(tasks.tasks);

    write_file("bundle/eval_meta_data.csv", "Eval Task,Random baseline\ncopa,1\n");
    assert_fails_with(core_tasks_read(&tasks, directory, &error), error,
                      "has no row with the baseline of task 'hellaswag_zeroshot'");
    write_file(
        "bundle/core.yaml",
        "icl_tasks:\n- {label: copa, dataset_uri: c, num_fewshot: [2], icl_task_type: schema}\n");
    assert_done(core_tasks_read(&tasks, directory, &error), error);
    assert_int_equal(tasks.count, 1);
    assert_true(tasks.tasks[0].baseline == 1);
    assert_int_equal(tasks.tasks[0].shots, 2);
    free(tasks.tasks);
}

/* CORE's own tasks are those of DCLM's list, but for MMLU, and their baselines those of nanochat's bundle. */
static void standard_is_dclm_s(void **state) {
    (void)state;
    const char *yaml = shared_data("core/dclm_mmlu_and_lowvar.yaml"),
               *csv = shared_data("core/eval_meta_data.nanochat-bundle.csv");
    if (!yaml || !csv) skip();
    Error error;
    Bytes text = {0};
    CoreTasks listed = {0}, standard = {0};
    assert_done(file_read(yaml, 1 << 20, &text, &error), error);
    assert_done(core_tasks_from_yaml(&listed, yaml, text.data, text.size, &error), error);
    bytes_free(&text);
    assert_done(file_read(csv, 1 << 20, &text, &error), error);
    assert_done(core_baselines_from_csv(&listed, csv, text.data, text.size, &error), error);
    bytes_free(&text);
    assert_done(core_tasks_standard(&standard, &error), error);
    assert_int_equal(listed.count, standard.count + 1);
    for (size_t i = 0; i < standard.count; i++) {
        const CoreTask *task = &standard.tasks[i], *expected = &listed.tasks[i + 1];
        assert_string_equal(task->label, expected->label);
        assert_string_equal(task->data, strchr(expected->data, '/') + 1);
        assert_string_equal(task->delimiter, expected->delimiter);
        assert_int_equal(task->type, expected->type);
        assert_int_equal(task->shots, expected->shots);
        assert_true(task->baseline == expected->baseline);
    }
    free(listed.tasks);
    free(standard.tasks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_is_read),
        cmocka_unit_test(wrong_yaml_is_refused),
        cmocka_unit_test(csv_is_read),
        cmocka_unit_test(wrong_csv_is_refused),
        cmocka_unit_test(wrong_examples_are_refused),
        cmocka_unit_test(bundles_decide),
        cmocka_unit_test(standard_is_dclm_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
