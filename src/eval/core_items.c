/* The examples of a task: JSON lines, every one of them checked. */
#include <stdlib.h>
#include <string.h>

#include "eval/core_bundle.h"

/* Where a type of task keeps its texts. */
typedef struct Fields {
    const char *contexts, *answers;
    enum { NO_LIST, LIST_OF_CONTEXTS, LIST_OF_ANSWERS } list;
} Fields;

static const Fields fields_of[CORE_TYPES] = {
    [CORE_MULTIPLE_CHOICE] = {"query", "choices", LIST_OF_ANSWERS},
    [CORE_SCHEMA] = {"context_options", "continuation", LIST_OF_CONTEXTS},
    [CORE_LANGUAGE_MODELING] = {"context", "continuation", NO_LIST},
};

const json_t *core_text(const json_t *texts, size_t choice) {
    return json_is_array(texts) ? json_array_get(texts, choice) : texts;
}

static bool find_string(const json_t *object, const char *key, const json_t **out, Error *error) {
    *out = json_object_get(object, key);
    return json_get_string(object, key, error) != NULL;
}

static bool find_list(const json_t *object, const char *key, const json_t **out, Error *error) {
    const json_t *list = *out = json_object_get(object, key);
    if (!list) return fail(error, "\"%s\" is missing", key);
    size_t count = json_array_size(list);
    if (count < 1 || count > CORE_CHOICES_MAX)
        return fail(error, "\"%s\" is not a list of 1 to %d texts", key, CORE_CHOICES_MAX);
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(list, i)))
            return fail(error, "number %zu of \"%s\" is not a text", i, key);
    return true;
}

static bool find_texts(CoreItem *item, const Fields *fields, Error *error) {
    const json_t *object = item->object;
    bool (*contexts)(const json_t *, const char *, const json_t **, Error *) =
        fields->list == LIST_OF_CONTEXTS ? find_list : find_string;
    bool (*answers)(const json_t *, const char *, const json_t **, Error *) =
        fields->list == LIST_OF_ANSWERS ? find_list : find_string;
    if (!contexts(object, fields->contexts, &item->contexts, error) ||
        !answers(object, fields->answers, &item->answers, error))
        return false;
    item->choices = 1;
    if (fields->list == NO_LIST) return true;
    item->choices =
        json_array_size(fields->list == LIST_OF_CONTEXTS ? item->contexts : item->answers);
    int64_t gold;
    if (!json_get_integer(object, "gold", 0, (int64_t)item->choices - 1, &gold, error))
        return false;
    item->gold = (size_t)gold;
    return true;
}

static bool add_item(CoreItems *items, CoreType type, const char *place, int64_t number,
                     const char *line, size_t size, Error *error) {
    if (!reserve(&items->items, &items->capacity, items->count + 1, sizeof *items->items, error))
        return false;
    CoreItem *item = &items->items[items->count];
    *item = (CoreItem){.line = number, .object = json_read_bytes(place, line, size, error)};
    if (!item->object) return false;
    items->count++; /* so that it is freed */
    return find_texts(item, &fields_of[type], error) || fail_within(error, "%s", place);
}

bool core_items_read(CoreItems *items, CoreType type, const char *path, const void *text,
                     size_t size, Error *error) {
    const char *at = text, *end = at + size;
    *items = (CoreItems){0};
    for (int64_t number = 1; at < end; number++) {
        const char *feed = memchr(at, '\n', (size_t)(end - at)), *stop = feed ? feed : end;
        size_t blank = 0, length = (size_t)(stop - at);
        while (blank < length && (at[blank] == ' ' || at[blank] == '\t' || at[blank] == '\r'))
            blank++;
        char place[256];
        snprintf(place, sizeof place, "%.200s:%lld", path, (long long)number);
        if (blank < length && !add_item(items, type, place, number, at, length, error))
            return false;
        at = feed ? feed + 1 : end;
    }
    return items->count || fail(error, "%s holds no example", path);
}

void core_items_free(CoreItems *items) {
    for (size_t i = 0; i < items->count; i++) json_decref(items->items[i].object);
    free(items->items);
    *items = (CoreItems){0};
}
