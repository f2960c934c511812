#include "base/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"

/* The number behind `key` in a file of lines "key: number kB", in bytes; 0 when there is none. */
static int64_t read_kilobytes(const char *path, const char *key) {
    FILE *file = fopen(path, "r");
    char line[256];
    long long kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) sscanf(line + strlen(key), ": %lld", &kilobytes);
    if (file) fclose(file);
    return (int64_t)kilobytes * 1024;
}

/* The single number in a control group's file; `otherwise` where there is no such file or no limit ("max"). */
static int64_t read_group(const char *path, int64_t otherwise) {
    FILE *file = fopen(path, "r");
    long long bytes = 0;
    bool found = file && fscanf(file, "%lld", &bytes) == 1;
    if (file) fclose(file);
    return found ? (int64_t)bytes : otherwise;
}

static int64_t group_limit(void) {
    return smaller(read_group("/sys/fs/cgroup/memory.max", INT64_MAX),
                   read_group("/sys/fs/cgroup/memory/memory.limit_in_bytes", INT64_MAX));
}

int64_t memory_installed(void) {
    return smaller(read_kilobytes("/proc/meminfo", "MemTotal"), group_limit());
}

int64_t memory_available(void) {
    int64_t available = read_kilobytes("/proc/meminfo", "MemAvailable"), limit = group_limit();
    if (limit == INT64_MAX) return available;
    int64_t used = smaller(read_group("/sys/fs/cgroup/memory.current", INT64_MAX),
                           read_group("/sys/fs/cgroup/memory/memory.usage_in_bytes", INT64_MAX));
    return used <= limit ? smaller(available, limit - used) : available;
}

int64_t memory_resident(void) {
    return read_kilobytes("/proc/self/status", "VmRSS");
}
