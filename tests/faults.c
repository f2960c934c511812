/* The linker's --wrap=NAME turns calls to NAME into calls to __wrap_NAME, and __real_NAME to NAME.
 */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int armed_functions;
static FaultEffect armed_effect;
static int64_t armed_call;
static atomic_int_fast64_t calls;

void faults_arm(int functions, FaultEffect effect, int64_t call) {
    json_set_alloc_funcs(malloc, free);
    armed_effect = effect;
    armed_call = call;
    calls = 0;
    armed_functions = functions;
}

bool faults_disarm(void) {
    armed_functions = 0;
    return calls >= armed_call;
}

static bool fault(int function, int code) {
    if (!(armed_functions & function)) return false;
    int64_t call = atomic_fetch_add(&calls, 1) + 1;
    if (call < armed_call || (call > armed_call && armed_effect != FAULT_LASTING)) return false;
    if (armed_effect == FAULT_KILL) _exit(FAULT_KILL_STATUS);
    errno = code;
    return true;
}

/* Declares the two functions behind a wrapped name. */
#define WRAPPED(type, name, ...) \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(void *, malloc, size_t size) {
    return fault(FAULTS_MEMORY, ENOMEM) ? NULL : __real_malloc(size);
}

WRAPPED(void *, calloc, size_t count, size_t size) {
    return fault(FAULTS_MEMORY, ENOMEM) ? NULL : __real_calloc(count, size);
}

WRAPPED(void *, realloc, void *memory, size_t size) {
    return fault(FAULTS_MEMORY, ENOMEM) ? NULL : __real_realloc(memory, size);
}

WRAPPED(void *, mmap, void *address, size_t size, int protection, int flags, int file,
        off_t offset) {
    if (fault(FAULTS_FILES, ENOMEM)) return MAP_FAILED;
    return __real_mmap(address, size, protection, flags, file, offset);
}

WRAPPED(int, open, const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return fault(FAULTS_FILES, EMFILE) ? -1 : __real_open(path, flags, mode);
}

WRAPPED(ssize_t, read, int file, void *data, size_t size) {
    return fault(FAULTS_FILES, EIO) ? -1 : __real_read(file, data, size);
}

WRAPPED(ssize_t, write, int file, const void *data, size_t size) {
    if (armed_effect == FAULT_KILL && (armed_functions & FAULTS_FILES) && calls + 1 == armed_call)
        (void)!__real_write(file, data, size / 2);
    return fault(FAULTS_FILES, ENOSPC) ? -1 : __real_write(file, data, size);
}

WRAPPED(int, fsync, int file) {
    return fault(FAULTS_FILES, EIO) ? -1 : __real_fsync(file);
}

WRAPPED(int, ftruncate, int file, off_t size) {
    return fault(FAULTS_FILES, EIO) ? -1 : __real_ftruncate(file, size);
}

WRAPPED(int, rename, const char *from, const char *to) {
    return fault(FAULTS_FILES, ENOSPC) ? -1 : __real_rename(from, to);
}

WRAPPED(int, mkdir, const char *path, mode_t mode) {
    return fault(FAULTS_FILES, ENOSPC) ? -1 : __real_mkdir(path, mode);
}
