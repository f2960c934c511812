/* The files of a CORE bundle: the first byte says which one it is. What is read keeps its limits, and
 * examples make prompts. */
#include <stdlib.h>
#include <string.h>

#include "eval/core_prompt.h"
#include "eval/core_sampling.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

static void read_yaml(const uint8_t *data, size_t size) {
    Error error;
    CoreTasks tasks = {0};
    if (core_tasks_from_yaml(&tasks, "core.yaml", data, size, &error)) {
        check(tasks.count > 0);
        for (size_t i = 0; i < tasks.count; i++) {
            const CoreTask *task = &tasks.tasks[i];
            check(task->shots >= 0 && task->shots <= CORE_SHOTS_MAX && task->type < CORE_TYPES);
            check(*task->data && *task->data != '/' && !strstr(task->data, ".."));
        }
    }
    free(tasks.tasks);
}

static void read_csv(const uint8_t *data, size_t size) {
    Error error;
    CoreTasks tasks = {0};
    check(core_tasks_standard(&tasks, &error));
    core_baselines_from_csv(&tasks, "meta.csv", data, size, &error);
    for (size_t i = 0; i < tasks.count; i++)
        check(tasks.tasks[i].baseline >= 0 && tasks.tasks[i].baseline < 100);
    free(tasks.tasks);
}

static void render(const CoreQuestion *question) {
    Error error;
    Bytes prompt = {0};
    for (size_t i = 0; i < question->items[question->index].choices; i++)
        check(core_prompt(question, i, &prompt, &error));
    check(core_prompt_unanswered(question, &prompt, &error));
    check(!prompt.size || (prompt.data[0] != ' ' && prompt.data[prompt.size - 1] != '\n'));
    bytes_free(&prompt);
}

static void read_items(CoreType type, const uint8_t *data, size_t size) {
    Error error;
    CoreItems items;
    const CoreTask task = {.type = type, .delimiter = " ", .shots = 2};
    if (core_items_read(&items, type, "x.jsonl", data, size, &error)) {
        size_t shots[CORE_SHOTS_MAX];
        for (size_t i = 0; i < items.count && items.count > 2; i++) {
            check(items.items[i].gold < items.items[i].choices);
            core_shots(i, items.count, 2, shots);
            render(&(CoreQuestion){&task, items.items, i, shots});
        }
    }
    core_items_free(&items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    uint8_t kind = *data % (CORE_TYPES + 2);
    if (kind == CORE_TYPES)
        read_yaml(data + 1, size - 1);
    else if (kind > CORE_TYPES)
        read_csv(data + 1, size - 1);
    else
        read_items((CoreType)kind, data + 1, size - 1);
    return 0;
}
