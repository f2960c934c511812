#include "driver.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace driver {

static std::recursive_mutex mutex;
static const char *current = "?";

Call::Call(const char *function) : lock_(mutex), outer_(current) {
    current = function;
}

Call::~Call() {
    current = outer_;
}

static void print(const char *format, va_list arguments) {
    fprintf(stderr, "test driver: %s: ", current);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
    fflush(nullptr);
    abort();
}

CUresult refuse(CUresult result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!getenv("TEST_GPU_QUIET")) print(format, arguments);
    va_end(arguments);
    return result;
}

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!getenv("TEST_GPU_QUIET")) print(format, arguments);
    va_end(arguments);
}

void log_line(const char *format, ...) {
    const char *path = getenv("TEST_GPU_LOG");
    if (!path) return;
    FILE *file = fopen(path, "a");
    if (!file) die("TEST_GPU_LOG: cannot write %s", path);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
    fclose(file);
}

bool fault_of(const char *kind, int64_t number) {
    const char *list = getenv("TEST_GPU_FAULT");
    std::string wanted = "," + std::string(kind) + ":" + std::to_string(number) + ",";
    return list && ("," + std::string(list) + ",").find(wanted) != std::string::npos;
}

bool fault_now(const char *kind) {
    static std::map<std::string, int64_t> times;
    return fault_of(kind, ++times[kind]);
}

} // namespace driver
