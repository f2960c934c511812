#include "cuda/nvml.h"

#include <dlfcn.h>

#include "cuda/driver.h"

#define SYMBOL(member, name, parameters) {name, (void **)&nvml->member},

bool nvml_open(Nvml *nvml, Error *error) {
    *nvml = (Nvml){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!nvml->library)
        return fail(error, "libnvidia-ml.so.1, which comes with the driver, was not found");
    const LibrarySymbol symbols[] = {NVML_FUNCTIONS(SYMBOL)};
    if (library_symbols(nvml->library, symbols, sizeof symbols / sizeof *symbols,
                        "libnvidia-ml.so.1", error)) {
        int status = nvml->init();
        if (status == NVML_OK) return true;
        fail(error, "NVML does not start (status %d): is the driver's kernel module loaded?",
             status);
    }
    dlclose(nvml->library);
    *nvml = (Nvml){0};
    return false;
}

void nvml_close(Nvml *nvml) {
    if (!nvml->library) return;
    nvml->shutdown();
    dlclose(nvml->library);
    *nvml = (Nvml){0};
}
