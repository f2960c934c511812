/* An evaluation bundle as DCLM and nanochat have it: core.yaml lists the tasks, eval_meta_data.csv says what
 * guessing scores on each, and eval_data holds their examples in JSON lines. */
#ifndef HEARTH_EVAL_CORE_BUNDLE_H
#define HEARTH_EVAL_CORE_BUNDLE_H

#include "base/json.h"

enum { CORE_CHOICES_MAX = 64 };

typedef enum CoreType {
    CORE_MULTIPLE_CHOICE,
    CORE_SCHEMA,
    CORE_LANGUAGE_MODELING,
    CORE_TYPES
} CoreType;

/* As core.yaml calls it. */
const char *core_type_name(CoreType type);

typedef struct CoreTask {
    char label[64];
    char data[128];     /* path of its examples within eval_data */
    char delimiter[64]; /* between a question and its answer */
    CoreType type;
    int shots;       /* examples shown before each question */
    double baseline; /* accuracy of guessing, in percent; NaN = not known yet */
} CoreTask;

typedef struct CoreTasks {
    CoreTask *tasks;
    size_t count, capacity;
} CoreTasks;

/* The tasks of the bundle in `directory`: those of its core.yaml, or CORE's 22 when it has none; with the
 * baselines of its eval_meta_data.csv, or CORE's when it has none. Release with free(tasks->tasks). */
bool core_tasks_read(CoreTasks *tasks, const char *directory, Error *error);

/* CORE's 22 tasks, with their baselines. */
bool core_tasks_standard(CoreTasks *tasks, Error *error);

/* The tasks of a YAML file's list icl_tasks, without baselines; appended to *tasks. */
bool core_tasks_from_yaml(CoreTasks *tasks, const char *path, const void *text, size_t size,
                          Error *error);

/* Sets the baselines of those tasks that the rows of a CSV file name. */
bool core_baselines_from_csv(CoreTasks *tasks, const char *path, const void *text, size_t size,
                             Error *error);

/* One example: a choice between texts, each of which continues a context. */
typedef struct CoreItem {
    json_t *object;                   /* the line, which holds the texts */
    const json_t *contexts, *answers; /* one string, or a list with one for each choice */
    size_t choices;                   /* 1 in language modeling */
    size_t gold;                      /* the right one */
    int64_t line;
} CoreItem;

typedef struct CoreItems {
    CoreItem *items;
    size_t count, capacity;
} CoreItems;

/* All examples of a task, in the file's order; blank lines are passed over. Release with core_items_free(),
 * also after a failure. */
bool core_items_read(CoreItems *items, CoreType type, const char *path, const void *text,
                     size_t size, Error *error);
void core_items_free(CoreItems *items);

/* What `contexts` or `answers` holds for a choice. */
const json_t *core_text(const json_t *texts, size_t choice);

#endif
