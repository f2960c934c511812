/* The doctor's look at the machine itself: processor, memory, disk, limits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/threads.h"
#include "base/units.h"
#include "cmd/checks.h"
#include "cpu/kernels.h"

/* The first line of a file of the kernel's, or what follows the colon in its first line that begins with
 * `key`. */
static bool read_line(const char *path, const char *key, char *out, size_t size) {
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(out, (int)size, file))
        found = !key || !strncmp(out, key, strlen(key));
    if (file) fclose(file);
    if (!found) return false;
    out[strcspn(out, "\n")] = '\0';
    const char *value = key ? strchr(out, ':') : NULL;
    if (value) memmove(out, value + strspn(value, ": "), strlen(value + strspn(value, ": ")) + 1);
    return true;
}

static void check_instructions(Checks *checks) {
    Error error;
    char model[256] = "";
    const CpuKernels *kernels = cpu_kernels(DTYPE_BF16, &error);
    int threads = thread_count();
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!kernels) {
        check_advise(checks_add(checks, "processor", "instructions", "%s", error.message),
                     CHECK_FIX, "unset HEARTH_ISA");
        return;
    }
    read_line("/proc/cpuinfo", "model name", model, sizeof model);
    Check *check = checks_add(checks, "processor", "instructions", "%s%s%s", kernels->isa,
                              *model ? " of " : "", model);
    if (getenv("HEARTH_ISA"))
        check_advise(check, CHECK_NOTE, "HEARTH_ISA chose these; unset it for the best there are");
    check = checks_add(checks, "processor", "threads", "%d of %ld", threads, processors);
    if (threads < processors && getenv("OMP_NUM_THREADS"))
        check_advise(check, CHECK_NOTE, "OMP_NUM_THREADS limits them; unset it to use all");
}

static void check_memory(Checks *checks) {
    enum { LEAST = 512 << 20 };
    char there[32], installed[32], pages[128];
    int64_t available = memory_available();
    Check *check =
        checks_add(checks, "processor", "memory", "%s of %s available",
                   format_bytes(there, available), format_bytes(installed, memory_installed()));
    if (available < LEAST)
        check_advise(check, CHECK_FIX,
                     "the smallest models need more: close other programs, or raise the "
                     "container's limit");
    if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", NULL, pages, sizeof pages))
        return;
    bool never = strstr(pages, "[never]");
    check = checks_add(checks, "processor", "huge pages", "%s", never ? "off" : "on");
    if (never)
        check_advise(check, CHECK_NOTE,
                     "large matrices are faster with them: echo madvise | sudo tee "
                     "/sys/kernel/mm/transparent_hugepage/enabled");
}

void check_processor(Checks *checks) {
    check_instructions(checks);
    check_memory(checks);
}

/* The directory itself or the nearest one above it that is there. */
static void nearest_directory(char *path) {
    while (!path_is_directory(path)) {
        char *slash = strrchr(path, '/');
        if (!slash) {
            strcpy(path, ".");
            return;
        }
        slash[slash == path] = '\0';
    }
}

/* Bytes a second that reach the disk; 0 with errno when nothing can be written. */
static double write_speed(const char *directory) {
    enum { PIECE = 4 << 20, PIECES = 16 };
    Error error;
    char *path = path_join(directory, ".hearth-doctor-XXXXXX", &error);
    uint8_t *piece = allocate(PIECE, 1, &error);
    int file = path && piece ? mkstemp(path) : -1, failure = errno;
    double started = seconds_now();
    bool done = file >= 0;
    if (done) unlink(path);
    for (int i = 0; done && i < PIECES; i++) {
        memset(piece, i + 1, PIECE);
        done = write(file, piece, PIECE) == PIECE;
    }
    done = done && fsync(file) == 0;
    if (file >= 0) failure = errno, close(file);
    free(piece);
    free(path);
    errno = failure;
    return done ? (double)PIECE * PIECES / (seconds_now() - started) : 0;
}

void check_disk(Checks *checks, const char *directory) {
    static const int64_t least = 1 << 30;
    static const double slow = 50e6;
    Error error;
    char text[32];
    struct statvfs disk;
    char *path = copy_string(directory, &error);
    if (!path) return;
    nearest_directory(path);
    if (statvfs(path, &disk) == 0) {
        int64_t room = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
        Check *check = checks_add(checks, "disk", "room", "%s free for %s",
                                  format_bytes(text, room), directory);
        if (room < least)
            check_advise(check, CHECK_FIX,
                         "a run keeps several checkpoints of 12 bytes for each parameter: make "
                         "room, or choose another disk with --run-dir");
    }
    double speed = write_speed(path);
    Check *check = speed > 0 ? checks_add(checks, "disk", "writing", "%.0f MB/s", 1e-6 * speed)
                             : checks_add(checks, "disk", "writing", "not possible in %s: %s", path,
                                          strerror(errno));
    if (speed <= 0)
        check_advise(check, CHECK_FIX, "choose a directory of your own with --run-dir");
    else if (speed < slow)
        check_advise(check, CHECK_NOTE,
                     "training waits while a checkpoint is written: a faster disk, or fewer "
                     "checkpoints (--checkpoint-interval)");
    free(path);
}

static void show_limit(char out[32], rlim_t limit, bool bytes) {
    if (limit == RLIM_INFINITY)
        strcpy(out, "unlimited");
    else if (bytes)
        format_bytes(out, (int64_t)limit);
    else
        snprintf(out, 32, "%llu", (unsigned long long)limit);
}

void check_limits(Checks *checks) {
    enum { FILES_LEAST = 256 };
    char text[32];
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        show_limit(text, limit.rlim_cur, false);
        Check *check = checks_add(checks, "limits", "open files", "%s", text);
        if (limit.rlim_cur < FILES_LEAST)
            check_advise(check, CHECK_FIX, "a dataset of many shards needs more: ulimit -n 4096");
    }
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        show_limit(text, limit.rlim_cur, true);
        check_advise(checks_add(checks, "limits", "size of a file", "%s", text), CHECK_NOTE,
                     "checkpoints larger than that cannot be written: ulimit -f unlimited");
    }
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        show_limit(text, limit.rlim_cur, true);
        checks_add(checks, "limits", "locked memory", "%s (a GPU's driver pins without it)", text);
    }
}
