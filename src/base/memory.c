#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *allocate(size_t count, size_t size, Error *error) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        fail(error, "out of memory: %zu elements of %zu bytes exceed the address space", count,
             size);
        return NULL;
    }
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) fail_memory(error, bytes);
    return memory;
}

bool reserve(void *array_address, size_t *capacity, size_t needed, size_t size, Error *error) {
    if (needed <= *capacity) return true;
    size_t grown = *capacity + *capacity / 2 + 16;
    if (grown < needed) grown = needed;
    size_t bytes;
    if (__builtin_mul_overflow(grown, size, &bytes)) return fail_memory(error, SIZE_MAX);
    void *old;
    memcpy(&old, array_address, sizeof old);
    void *array = realloc(old, bytes);
    if (!array) return fail_memory(error, bytes);
    memcpy(array_address, &array, sizeof array);
    *capacity = grown;
    return true;
}

bool bytes_append(Bytes *bytes, const void *data, size_t size, Error *error) {
    size_t needed;
    if (__builtin_add_overflow(bytes->size, size, &needed)) return fail_memory(error, SIZE_MAX);
    if (!reserve(&bytes->data, &bytes->capacity, needed, 1, error)) return false;
    if (size) memcpy(bytes->data + bytes->size, data, size);
    bytes->size = needed;
    return true;
}

bool bytes_format(Bytes *bytes, Error *error, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    bool done = length >= 0 &&
                reserve(&bytes->data, &bytes->capacity, bytes->size + (size_t)length + 1, 1, error);
    if (done) {
        vsnprintf((char *)bytes->data + bytes->size, (size_t)length + 1, format, again);
        bytes->size += (size_t)length;
    }
    va_end(again);
    return done;
}

void bytes_free(Bytes *bytes) {
    free(bytes->data);
    *bytes = (Bytes){0};
}

char *copy_string(const char *text, Error *error) {
    size_t size = strlen(text) + 1;
    char *copy = allocate(size, 1, error);
    if (copy) memcpy(copy, text, size);
    return copy;
}
