/* The list of tasks in core.yaml. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "eval/core_bundle.h"
#include "eval/core_sampling.h"

typedef struct Document {
    yaml_document_t *yaml;
    const char *path;
    Error *error;
} Document;

/* Fails with the place of a node before the message. */
static bool fail_at(const Document *document, const yaml_node_t *node) {
    return fail_within(document->error, "%s:%zu", document->path, node->start_mark.line + 1);
}

/* Sets *value to that of a mapping's key, or to NULL where there is none. Fails where there are several. */
static bool find_value(const Document *document, const yaml_node_t *mapping, const char *key,
                       const yaml_node_t **value) {
    *value = NULL;
    if (mapping->type != YAML_MAPPING_NODE) return true;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = yaml_document_get_node(document->yaml, pair->key);
        if (name->type != YAML_SCALAR_NODE || name->data.scalar.length != strlen(key) ||
            memcmp(name->data.scalar.value, key, strlen(key)) != 0)
            continue;
        if (*value) {
            fail(document->error, "%s is given a second time; keep one of the two", key);
            return fail_at(document, name);
        }
        *value = yaml_document_get_node(document->yaml, pair->value);
    }
    return true;
}

/* Copies a scalar of at most size - 1 bytes. */
static bool copy_scalar(const Document *document, const yaml_node_t *node, const char *key,
                        char *out, size_t size) {
    if (node->type != YAML_SCALAR_NODE) {
        fail(document->error, "%s is not a text", key);
        return fail_at(document, node);
    }
    size_t length = node->data.scalar.length;
    if (length >= size || memchr(node->data.scalar.value, 0, length)) {
        fail(document->error, "%s is longer than %zu bytes, or holds a NUL byte", key, size - 1);
        return fail_at(document, node);
    }
    memcpy(out, node->data.scalar.value, length);
    out[length] = '\0';
    return true;
}

static bool read_text(const Document *document, const yaml_node_t *task, const char *key, char *out,
                      size_t size) {
    const yaml_node_t *node;
    if (!find_value(document, task, key, &node)) return false;
    if (node) return copy_scalar(document, node, key, out, size);
    fail(document->error, "the task has no %s", key);
    return fail_at(document, task);
}

static bool read_type(const Document *document, const yaml_node_t *task, CoreType *type) {
    char name[64];
    if (!read_text(document, task, "icl_task_type", name, sizeof name)) return false;
    for (*type = 0; *type < CORE_TYPES; ++*type)
        if (!strcmp(name, core_type_name(*type))) return true;
    fail(document->error,
         "icl_task_type '%s' is none of multiple_choice, schema, language_modeling", name);
    return fail_at(document, task);
}

/* A list, of which the first counts. */
static bool read_shots(const Document *document, const yaml_node_t *task, int *shots) {
    const yaml_node_t *list;
    if (!find_value(document, task, "num_fewshot", &list)) return false;
    bool given = list && list->type == YAML_SEQUENCE_NODE &&
                 list->data.sequence.items.top > list->data.sequence.items.start;
    char text[16], *end;
    if (!given) {
        fail(document->error, "num_fewshot is not a list of a number, as in [10]");
        return fail_at(document, task);
    }
    const yaml_node_t *first =
        yaml_document_get_node(document->yaml, *list->data.sequence.items.start);
    if (!copy_scalar(document, first, "num_fewshot", text, sizeof text)) return false;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < 0 || number > CORE_SHOTS_MAX) {
        fail(document->error, "num_fewshot '%s' is not a number from 0 to %d", text,
             CORE_SHOTS_MAX);
        return fail_at(document, first);
    }
    *shots = (int)number;
    return true;
}

/* The data must stay inside the bundle. */
static bool read_data(const Document *document, const yaml_node_t *task, char *out, size_t size) {
    if (!read_text(document, task, "dataset_uri", out, size)) return false;
    if (*out && *out != '/' && !strstr(out, "..")) return true;
    fail(document->error, "dataset_uri '%s' is not a path inside eval_data", out);
    return fail_at(document, task);
}

static bool is_known(const CoreTasks *tasks, const char *label) {
    for (size_t i = 0; i < tasks->count; i++)
        if (!strcmp(tasks->tasks[i].label, label)) return true;
    return false;
}

static bool read_task(const Document *document, const yaml_node_t *node, CoreTasks *tasks) {
    CoreTask task = {.delimiter = " ", .baseline = NAN};
    const yaml_node_t *delimiter;
    if (!read_text(document, node, "label", task.label, sizeof task.label) ||
        !read_data(document, node, task.data, sizeof task.data) ||
        !read_type(document, node, &task.type) || !read_shots(document, node, &task.shots) ||
        !find_value(document, node, "continuation_delimiter", &delimiter) ||
        (delimiter && !copy_scalar(document, delimiter, "continuation_delimiter", task.delimiter,
                                   sizeof task.delimiter)))
        return false;
    if (is_known(tasks, task.label)) {
        fail(document->error, "task '%s' is listed twice", task.label);
        return fail_at(document, node);
    }
    if (!reserve(&tasks->tasks, &tasks->capacity, tasks->count + 1, sizeof task, document->error))
        return false;
    tasks->tasks[tasks->count++] = task;
    return true;
}

static bool read_tasks(const Document *document, CoreTasks *tasks) {
    const yaml_node_t *root = yaml_document_get_root_node(document->yaml);
    const yaml_node_t *list = NULL;
    if (root && !find_value(document, root, "icl_tasks", &list)) return false;
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return fail(document->error, "%s has no list icl_tasks", document->path);
    for (const yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++)
        if (!read_task(document, yaml_document_get_node(document->yaml, *item), tasks))
            return false;
    return tasks->count || fail(document->error, "%s lists no task", document->path);
}

bool core_tasks_from_yaml(CoreTasks *tasks, const char *path, const void *text, size_t size,
                          Error *error) {
    yaml_parser_t parser;
    yaml_document_t yaml;
    if (!yaml_parser_initialize(&parser)) return fail(error, "out of memory reading %s", path);
    yaml_parser_set_input_string(&parser, text, size);
    bool done = yaml_parser_load(&parser, &yaml);
    if (done) {
        done = read_tasks(&(Document){&yaml, path, error}, tasks);
        yaml_document_delete(&yaml);
    } else {
        fail(error, "%s:%zu: %s", path, parser.problem_mark.line + 1,
             parser.problem ? parser.problem : "not valid YAML");
    }
    yaml_parser_delete(&parser);
    return done;
}
