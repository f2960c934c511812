/* A bundle into examples of tokens. */
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "eval/core.h"
#include "eval/core_sampling.h"

enum { DATA_BYTES = 1 << 30 };

/* Examples between two looks at the clock. */
enum { BLOCK = 256 };

/* The items in the order in which they are asked, the first `limit` of them; the others are freed. */
static bool shuffle(CoreItems *items, int64_t limit, Error *error) {
    CoreItem *shuffled = allocate(items->count, sizeof *shuffled, error);
    size_t *order = allocate(items->count, sizeof *order, error);
    if (shuffled && order) {
        core_shuffle(order, items->count);
        for (size_t i = 0; i < items->count; i++) shuffled[i] = items->items[order[i]];
        free(items->items);
        items->items = shuffled;
        while (limit && (int64_t)items->count > limit)
            json_decref(items->items[--items->count].object);
    } else {
        free(shuffled);
    }
    free(order);
    return shuffled && order;
}

static bool make_example(CoreExample *example, const CoreTask *task, const CoreItems *items,
                         size_t index, const CoreTokenizing *tokenizing, Error *error) {
    size_t shots[CORE_SHOTS_MAX];
    core_shots(index, items->count, (size_t)task->shots, shots);
    const CoreQuestion question = {task, items->items, index, shots};
    return core_example_make(example, &question, tokenizing, error);
}

/* Examples first .. end - 1 on all cores. The error is that of the first that fails. */
static bool make_block(CoreSet *set, const CoreItems *items, size_t first, size_t end,
                       const CoreTokenizing *tokenizing, Error *error) {
    size_t failed = end;
#pragma omp parallel for schedule(dynamic)
    for (size_t i = first; i < end; i++) {
        Error own;
        if (make_example(&set->examples[i], &set->task, items, i, tokenizing, &own)) continue;
#pragma omp critical(core_example)
        if (i < failed) failed = i, *error = own;
    }
    return failed == end || fail_within(error, "line %lld", (long long)items->items[failed].line);
}

static bool make_examples(Core *core, CoreSet *set, const CoreItems *items,
                          const CoreTokenizing *tokenizing, Error *error) {
    if ((size_t)set->task.shots >= items->count)
        return fail(error,
                    "%d examples before each question need more than the %zu there are; a cap on "
                    "the examples of a task must be above %d",
                    set->task.shots, items->count, set->task.shots);
    set->examples = allocate(items->count, sizeof *set->examples, error);
    if (!set->examples) return false;
    set->count = items->count;
    Progress progress = progress_start("tokenizing the tasks of CORE", 0);
    bool done = true;
    for (size_t first = 0; done && first < set->count; first += BLOCK) {
        size_t end = first + BLOCK < set->count ? first + BLOCK : set->count;
        done = make_block(set, items, first, end, tokenizing, error);
        progress_update(&progress, first);
    }
    progress_end(&progress);
    if (!done) return false;
    for (size_t i = 0; i < set->count; i++) {
        size_t longest = core_example_longest(&set->examples[i]);
        if (longest > core->longest) core->longest = longest;
        core->tokens += core_example_tokens(&set->examples[i]);
    }
    return true;
}

/* A task whose data is missing stays without examples. */
static bool read_set(Core *core, CoreSet *set, const char *directory, int64_t limit,
                     const CoreTokenizing *tokenizing, Error *error) {
    char *path = path_join(directory, set->task.data, error);
    FileMap file = {0};
    CoreItems items = {0};
    bool done = path != NULL, present = done && path_exists(path);
    if (present) {
        done = file_map(&file, path, error);
        if (done && file.size > DATA_BYTES) done = fail(error, "%s is larger than 1 GiB", path);
        done = done && core_items_read(&items, set->task.type, path, file.data, file.size, error) &&
               shuffle(&items, limit, error);
        if (done && !make_examples(core, set, &items, tokenizing, error))
            done = fail_within(error, "task %s, %s", set->task.label, path);
        core->present += done;
    }
    core_items_free(&items);
    file_unmap(&file);
    free(path);
    return done;
}

static bool read_sets(Core *core, const CoreTasks *tasks, const char *directory, int64_t limit,
                      const CoreTokenizing *tokenizing, Error *error) {
    core->sets = allocate(tasks->count, sizeof *core->sets, error);
    if (!core->sets) return false;
    core->count = tasks->count;
    for (size_t i = 0; i < core->count; i++) {
        core->sets[i].task = tasks->tasks[i];
        if (!read_set(core, &core->sets[i], directory, limit, tokenizing, error)) return false;
    }
    return core->present || fail(error, "%s has the data of none of the %zu tasks, as in %s/%s",
                                 directory, core->count, directory, core->sets[0].task.data);
}

bool core_open(Core *core, const char *directory, const Tokenizer *tokenizer,
               const CoreSettings *settings, Error *error) {
    CoreTasks tasks = {0};
    int64_t separator = tokenizer_document_separator(tokenizer);
    const CoreTokenizing tokenizing = {.tokenizer = tokenizer,
                                       .separator = (uint32_t)separator,
                                       .longest =
                                           (size_t)(CORE_CONTEXTS * settings->sequence_length)};
    *core = (Core){0};
    if (separator < 0)
        return fail(error,
                    "the tokenizer has no document separator, with which CORE's prompts begin");
    char *data = path_join(directory, "eval_data", error);
    bool done = data && core_tasks_read(&tasks, directory, error) &&
                read_sets(core, &tasks, data, settings->examples, &tokenizing, error);
    free(tasks.tasks);
    free(data);
    if (!done) core_close(core);
    return done;
}

void core_close(Core *core) {
    for (size_t i = 0; i < core->count; i++) {
        CoreSet *set = &core->sets[i];
        for (size_t j = 0; j < set->count; j++) core_example_free(&set->examples[j]);
        free(set->examples);
    }
    free(core->sets);
    *core = (Core){0};
}
