#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

json_t *json_read_bytes(const char *name, const void *data, size_t size, Error *error) {
    json_error_t problem;
    json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
    if (!root) {
        fail(error, "%s is not valid JSON: %s at line %d, column %d", name, problem.text,
             problem.line, problem.column);
        return NULL;
    }
    if (!json_is_object(root)) {
        fail(error, "%s does not hold a JSON object", name);
        json_decref(root);
        return NULL;
    }
    return root;
}

json_t *json_read_file(const char *path, size_t limit, Error *error) {
    Bytes bytes = {0};
    json_t *root = NULL;
    if (file_read(path, limit, &bytes, error))
        root = json_read_bytes(path, bytes.data, bytes.size, error);
    bytes_free(&bytes);
    return root;
}

typedef struct TextSink {
    Bytes *out;
    bool failed;
    Error *error;
} TextSink;

static int append_text(const char *text, size_t size, void *data) {
    TextSink *sink = data;
    if (!sink->failed) sink->failed = !bytes_append(sink->out, text, size, sink->error);
    return sink->failed ? -1 : 0;
}

bool json_to_text(Bytes *out, const json_t *value, size_t flags, Error *error) {
    TextSink sink = {.out = out, .error = error};
    bool done = json_dump_callback(value, append_text, &sink, flags) == 0;
    if (sink.failed) return false;
    return done || fail(error, "a value has no JSON form, or memory is exhausted");
}

bool json_write_file(const char *path, const json_t *value, Error *error) {
    Bytes text = {0};
    bool done =
        json_to_text(&text, value, JSON_INDENT(2), error) && bytes_append(&text, "\n", 1, error);
    if (!done) fail_within(error, "cannot write %s", path);
    done = done && file_write(path, text.data, text.size, error);
    bytes_free(&text);
    return done;
}

bool json_get_integer(const json_t *object, const char *key, int64_t minimum, int64_t maximum,
                      int64_t *out, Error *error) {
    const json_t *value = json_object_get(object, key);
    if (!value) return fail(error, "\"%s\" is missing", key);
    if (!json_is_integer(value)) return fail(error, "\"%s\" is not a whole number", key);
    int64_t number = json_integer_value(value);
    if (number < minimum || number > maximum)
        return fail(error, "\"%s\" is %lld; it must be from %lld to %lld", key, (long long)number,
                    (long long)minimum, (long long)maximum);
    *out = number;
    return true;
}

bool json_get_number(const json_t *object, const char *key, double *out, Error *error) {
    const json_t *value = json_object_get(object, key);
    if (!value) return fail(error, "\"%s\" is missing", key);
    if (!json_is_number(value)) return fail(error, "\"%s\" is not a number", key);
    *out = json_number_value(value);
    return true;
}

bool json_get_bool(const json_t *object, const char *key, bool *out, Error *error) {
    const json_t *value = json_object_get(object, key);
    if (!value) return fail(error, "\"%s\" is missing", key);
    if (!json_is_boolean(value)) return fail(error, "\"%s\" is neither true nor false", key);
    *out = json_is_true(value);
    return true;
}

const char *json_get_string(const json_t *object, const char *key, Error *error) {
    const json_t *value = json_object_get(object, key);
    if (!value)
        fail(error, "\"%s\" is missing", key);
    else if (!json_is_string(value))
        fail(error, "\"%s\" is not a string", key);
    else
        return json_string_value(value);
    return NULL;
}
