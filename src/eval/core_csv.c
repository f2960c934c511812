/* The baselines in eval_meta_data.csv, read as Python's csv.DictReader does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/core_bundle.h"

typedef struct Table {
    const char *path;
    const char *at, *end;
    int64_t line; /* of the row */
    Bytes text;   /* of the row's fields, a NUL behind each */
    int fields;
} Table;

static bool is_line_end(char c) {
    return c == '\n' || c == '\r';
}

static bool fail_at(const Table *table, Error *error) {
    return fail_within(error, "%s:%lld", table->path, (long long)table->line);
}

/* Up to the comma or line end behind the field. A quote at its start begins text in which commas and line
 * ends stand for themselves, up to a quote that is not followed by another. */
static bool read_field(Table *table, int64_t *line, Error *error) {
    bool quoted = table->at < table->end && *table->at == '"';
    table->at += quoted;
    for (;; table->at++) {
        if (table->at == table->end) {
            if (!quoted) break;
            return fail(error, "a quote is not closed");
        }
        if (quoted && *table->at == '"') {
            if (table->at + 1 == table->end || table->at[1] != '"') {
                quoted = false;
                continue;
            }
            table->at++;
        } else if (!quoted && (*table->at == ',' || is_line_end(*table->at))) {
            break;
        }
        if (!*table->at) return fail(error, "a field holds a NUL byte");
        *line += *table->at == '\n';
        if (!bytes_append(&table->text, table->at, 1, error)) return false;
    }
    table->fields++;
    return bytes_append(&table->text, "", 1, error);
}

static void skip_line_ends(Table *table, int64_t *line) {
    for (; table->at < table->end && is_line_end(*table->at); table->at++)
        *line += *table->at == '\n';
}

/* The next row that is not empty; *more is false at the end. */
static bool read_row(Table *table, int64_t *line, bool *more, Error *error) {
    table->text.size = 0;
    table->fields = 0;
    skip_line_ends(table, line);
    table->line = *line;
    *more = table->at < table->end;
    while (*more) {
        if (!read_field(table, line, error)) return fail_at(table, error);
        if (table->at == table->end || *table->at != ',') break;
        table->at++;
    }
    return true;
}

static const char *field(const Table *table, int index) {
    const char *text = (const char *)table->text.data;
    if (index >= table->fields) return NULL;
    while (index--) text += strlen(text) + 1;
    return text;
}

static bool find_column(const Table *table, const char *name, int *column, Error *error) {
    for (*column = 0; *column < table->fields; ++*column)
        if (!strcmp(field(table, *column), name)) return true;
    return fail(error, "%s has no column '%s'", table->path, name);
}

static bool read_baseline(const Table *table, CoreTasks *tasks, int label_column,
                          int baseline_column, Error *error) {
    const char *label = field(table, label_column), *text = field(table, baseline_column);
    char *end;
    if (!label || !text) {
        fail(error, "the row has %d fields only", table->fields);
        return fail_at(table, error);
    }
    double baseline = strtod(text, &end);
    if (end == text || *end || !(baseline >= 0 && baseline < 100)) {
        fail(error, "the random baseline '%.32s' is not a percentage below 100", text);
        return fail_at(table, error);
    }
    for (size_t i = 0; i < tasks->count; i++)
        if (!strcmp(tasks->tasks[i].label, label)) tasks->tasks[i].baseline = baseline;
    return true;
}

bool core_baselines_from_csv(CoreTasks *tasks, const char *path, const void *text, size_t size,
                             Error *error) {
    Table table = {.path = path, .at = text, .end = (const char *)text + size};
    int64_t line = 1;
    int label_column, baseline_column;
    bool more;
    bool done = read_row(&table, &line, &more, error) &&
                find_column(&table, "Eval Task", &label_column, error) &&
                find_column(&table, "Random baseline", &baseline_column, error);
    while (done && (done = read_row(&table, &line, &more, error)) && more)
        done = read_baseline(&table, tasks, label_column, baseline_column, error);
    bytes_free(&table.text);
    return done;
}
