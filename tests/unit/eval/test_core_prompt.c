/* The text of prompts is nanochat's: tests/golden/core/prompts.json. */
#include "support.h"

#include <string.h>

#include "base/file.h"
#include "eval/core_prompt.h"
#include "eval/core_sampling.h"

static json_t *golden;

static int open_golden(void **state) {
    (void)state;
    Error error;
    golden = json_read_file(HEARTH_SOURCE "/tests/golden/core/prompts.json", 1 << 20, &error);
    assert_done(golden != NULL, error);
    return 0;
}

static int close_golden(void **state) {
    (void)state;
    json_decref(golden);
    return 0;
}

static const char *text(const json_t *object, const char *key) {
    Error error;
    const char *value = json_get_string(object, key, &error);
    assert_done(value != NULL, error);
    return value;
}

static CoreTask task_of(const json_t *object, int shots) {
    CoreTask task = {.shots = shots};
    snprintf(task.delimiter, sizeof task.delimiter, "%s", text(object, "delimiter"));
    while (strcmp(core_type_name(task.type), text(object, "type")) != 0) task.type++;
    return task;
}

/* Appends all prompts of an example as nanochat lists them, a NUL behind each. */
static void append_prompts(Bytes *out, const CoreQuestion *question) {
    Error error;
    Bytes prompt = {0};
    if (question->task->type == CORE_LANGUAGE_MODELING) {
        assert_done(core_prompt_unanswered(question, &prompt, &error), error);
        assert_done(bytes_append(out, prompt.data, prompt.size, &error), error);
        assert_done(bytes_append(out, "", 1, &error), error);
    }
    for (size_t i = 0; i < question->items[question->index].choices; i++) {
        assert_done(core_prompt(question, i, &prompt, &error), error);
        assert_done(bytes_append(out, prompt.data, prompt.size, &error), error);
        assert_done(bytes_append(out, "", 1, &error), error);
    }
    bytes_free(&prompt);
}

static void check(const json_t *object, Bytes *prompts, const char *what) {
    char sha256[SHA256_TEXT];
    sha256_bytes(prompts->data, prompts->size, sha256);
    if (strcmp(sha256, text(object, "sha256")) != 0)
        fail_msg("%s: the prompts differ: %.*s", what, (int)prompts->size, (char *)prompts->data);
    bytes_free(prompts);
}

static void read_lines(CoreItems *items, CoreType type) {
    Error error;
    Bytes lines = {0};
    size_t index;
    const json_t *line,
        *all = json_object_get(json_object_get(golden, "lines"), core_type_name(type));
    json_array_foreach (all, index, line)
        assert_done(bytes_format(&lines, &error, "%s\r\n\n", json_string_value(line)), error);
    assert_done(core_items_read(items, type, "golden", lines.data, lines.size, &error), error);
    assert_int_equal(items->count, json_array_size(all));
    bytes_free(&lines);
}

static void hostile_examples(void **state) {
    (void)state;
    size_t number;
    const json_t *object;
    json_array_foreach (json_object_get(golden, "cases"), number, object) {
        const json_t *listed = json_object_get(object, "shots");
        size_t shots[CORE_SHOTS_MAX], count = json_array_size(listed);
        CoreTask task = task_of(object, (int)count);
        CoreItems items;
        Bytes prompts = {0};
        read_lines(&items, task.type);
        for (size_t i = 0; i < count; i++)
            shots[i] = (size_t)json_integer_value(json_array_get(listed, i));
        size_t index = (size_t)json_integer_value(json_object_get(object, "index"));
        append_prompts(&prompts, &(CoreQuestion){&task, items.items, index, shots});
        check(object, &prompts, task.delimiter);
        core_items_free(&items);
    }
    assert_int_equal(number, 3 * 4 * 16);
}

static void shuffle(CoreItems *items) {
    size_t *order = malloc(items->count * sizeof *order);
    CoreItem *before = malloc(items->count * sizeof *before);
    core_shuffle(order, items->count);
    memcpy(before, items->items, items->count * sizeof *before);
    for (size_t i = 0; i < items->count; i++) items->items[i] = before[order[i]];
    free(order);
    free(before);
}

static void check_task(const json_t *object, const char *path) {
    Error error;
    FileMap file;
    CoreItems items;
    Bytes prompts = {0};
    CoreTask task = task_of(object, (int)json_integer_value(json_object_get(object, "shots")));
    assert_done(file_map(&file, path, &error), error);
    assert_done(core_items_read(&items, task.type, path, file.data, file.size, &error), error);
    shuffle(&items);
    size_t count = (size_t)json_integer_value(json_object_get(golden, "examples"));
    if (items.count < count) count = items.count;
    for (size_t index = 0; index < count; index++) {
        size_t shots[CORE_SHOTS_MAX];
        core_shots(index, count, (size_t)task.shots, shots);
        append_prompts(&prompts, &(CoreQuestion){&task, items.items, index, shots});
    }
    check(object, &prompts, path);
    core_items_free(&items);
    file_unmap(&file);
}

static void shared_tasks(void **state) {
    (void)state;
    if (!shared_data("core")) skip();
    size_t number;
    const json_t *object;
    json_array_foreach (json_object_get(golden, "tasks"), number, object) {
        char name[256];
        snprintf(name, sizeof name, "core/%s", text(object, "data"));
        const char *path = shared_data(name);
        if (path) check_task(object, path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_examples),
        cmocka_unit_test(shared_tasks),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
