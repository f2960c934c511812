#include "train/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

enum { MESSAGE_MAX = 1024, LINE_MAX_BYTES = 8192 }; /* escaping makes at most six bytes of one */

/* Whether the last byte of the file is not a newline, as after a kill on a full disk. */
static bool ends_torn(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char last;
    bool torn = lseek(file, -1, SEEK_END) >= 0 && read(file, &last, 1) == 1 && last != '\n';
    close(file);
    return torn;
}

bool metrics_open(MetricsLog *log, const char *path, Error *error) {
    *log = (MetricsLog){.file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)};
    if (log->file < 0) return fail_errno(error, "cannot open the log %s", path);
    log->torn = ends_torn(path);
    return true;
}

void metrics_close(MetricsLog *log) {
    if (log->file >= 0) close(log->file);
    log->file = -1;
}

/* A line under way. Its first byte is a newline, written only after a torn line. */
typedef struct Line {
    char text[LINE_MAX_BYTES];
    size_t used;
} Line;

__attribute__((format(printf, 2, 3))) static void add(Line *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(line->text + line->used, sizeof line->text - line->used, format, arguments);
    va_end(arguments);
    if (length > 0) line->used += (size_t)length;
}

static void add_integer(Line *line, const char *key, int64_t value) {
    add(line, "%s\"%s\":%lld", line->used > 2 ? "," : "", key, (long long)value);
}

static void add_number(Line *line, const char *key, double value) {
    if (isfinite(value))
        add(line, ",\"%s\":%.9g", key, value);
    else
        add(line, ",\"%s\":null", key);
}

static void start(Line *line) {
    line->used = 0;
    add(line, "\n{");
}

static void finish(MetricsLog *log, Line *line) {
    add(line, "}\n");
    const char *text = log->torn ? line->text : line->text + 1;
    size_t size = (size_t)(line->text + line->used - text);
    ssize_t written;
    do written = write(log->file, text, size);
    while (written < 0 && errno == EINTR);
    if (written == (ssize_t)size) {
        log->torn = false;
        return;
    }
    if (written > 0) log->torn = true;
    if (!log->warned)
        log_warning("cannot write to log.jsonl: %s; training goes on, lines will be missing",
                    written < 0 ? strerror(errno) : "the disk is full");
    log->warned = true;
}

void metrics_step(MetricsLog *log, const StepMetrics *metrics) {
    Line line;
    start(&line);
    add_integer(&line, "step", metrics->step);
    add_integer(&line, "tokens", metrics->tokens);
    add_number(&line, "epoch", metrics->epoch);
    add_number(&line, "loss", metrics->loss);
    add_number(&line, "lr", metrics->lr);
    add_number(&line, "grad_norm", metrics->grad_norm);
    add_number(&line, "step_ms", metrics->step_ms);
    add_number(&line, "tokens_per_s", metrics->tokens_per_s);
    add_number(&line, "mfu", metrics->mfu);
    add_number(&line, "data_wait_ms", metrics->data_wait_ms);
    add_number(&line, "checkpoint_wait_ms", metrics->checkpoint_wait_ms);
    add_integer(&line, "mem_bytes", metrics->mem_bytes);
    finish(log, &line);
}

void metrics_evaluation(MetricsLog *log, int64_t step, double val_loss, double val_bpb) {
    Line line;
    start(&line);
    add_integer(&line, "step", step);
    add_number(&line, "val_loss", val_loss);
    add_number(&line, "val_bpb", val_bpb);
    finish(log, &line);
}

void metrics_core(MetricsLog *log, int64_t step, double core, size_t tasks,
                  size_t tasks_of_bundle) {
    Line line;
    start(&line);
    add_integer(&line, "step", step);
    add_number(&line, "core", core);
    add_integer(&line, "core_tasks", (int64_t)tasks);
    add_integer(&line, "core_tasks_of_bundle", (int64_t)tasks_of_bundle);
    finish(log, &line);
}

/* The text as a JSON string, quotes included; what is not UTF-8 loses its non-ASCII bytes. */
static char *quoted(char *text) {
    json_t *string = json_string(text);
    if (!string) {
        for (char *byte = text; *byte; byte++)
            if ((unsigned char)*byte >= 0x80) *byte = '?';
        string = json_string(text);
    }
    char *result = json_dumps(string, JSON_ENCODE_ANY);
    json_decref(string);
    return result;
}

void metrics_event(MetricsLog *log, const char *event, int64_t step, const char *format, ...) {
    char message[MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    char *text = quoted(message);
    Line line;
    start(&line);
    add(&line, "\"event\":\"%s\",\"step\":%lld", event, (long long)step);
    add(&line, ",\"message\":%s", text ? text : "\"\"");
    free(text);
    finish(log, &line);
}
