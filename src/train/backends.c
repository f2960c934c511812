#include "train/backends.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cpu/backend.h"
#include "cuda/backend.h"

/* A GPU whose driver is there, but which cannot be used, is worth a word. */
static const Backend *best_backend(void) {
    Error why_not;
    if (cuda_present(&why_not)) return &backend_cuda;
    if (path_exists("/dev/nvidiactl") || path_exists("/dev/dxg")) /* the latter in WSL */
        log_warning("the GPU is not used: %s ('hearth doctor' says more)", why_not.message);
    return &backend_cpu;
}

const Backend *backend_find(const char *name, Error *error) {
    if (!strcmp(name, "this")) return best_backend();
    if (!strcmp(name, backend_cpu.name)) return &backend_cpu;
    if (strcmp(name, backend_cuda.name) != 0) {
        fail(error, "device '%s' is not known; choose cpu, cuda, or this", name);
        return NULL;
    }
    if (cuda_present(error)) return &backend_cuda;
    fail_within(error, "--device cuda cannot be used");
    return NULL;
}
