/* The JSON line scanner: whatever the bytes, it stays inside them; and a line that jansson, which is
 * stricter but for NUL bytes, reads has the same string for the scanner, up to the depth it allows. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/json_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Error error;
    Bytes out = {0};
    bool found = json_line_string(data, size, "text", &out, &error);
    json_t *root = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    const json_t *value = json_object_get(root, "text");
    bool too_deep = !found && strstr(error.message, "nested");
    if (json_is_string(value) && !too_deep && !memchr(data, 0, size)) {
        if (!found || out.size != json_string_length(value) ||
            (out.size && memcmp(out.data, json_string_value(value), out.size)))
            abort();
    }
    json_decref(root);
    bytes_free(&out);
    return 0;
}
