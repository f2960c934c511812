#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

bool library_symbols(void *library, const LibrarySymbol *symbols, size_t count, const char *name,
                     Error *error) {
    for (size_t i = 0; i < count; i++)
        if (!(*symbols[i].place = dlsym(library, symbols[i].name)))
            return fail(
                error,
                "%s has no function %s: it is older than hearth needs (driver 580, cuBLASLt "
                "12); update it",
                name, symbols[i].name);
    return true;
}

#define SYMBOL(member, name, declaration) {name, (void **)&table->member},

bool cuda_driver_open(CudaDriver *table, Error *error) {
    *table = (CudaDriver){.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!table->library)
        return fail(error, "no NVIDIA driver is installed (libcuda.so.1 was not found)");
    const LibrarySymbol symbols[] = {CUDA_FUNCTIONS(SYMBOL)};
    if (library_symbols(table->library, symbols, sizeof symbols / sizeof *symbols, "libcuda.so.1",
                        error))
        return true;
    cuda_driver_close(table);
    return false;
}

void cuda_driver_close(CudaDriver *table) {
    if (table->library) dlclose(table->library);
    *table = (CudaDriver){0};
}

bool cuda_first_device(const CudaDriver *driver, CUdevice *device, int *count, Error *error) {
    *count = 0;
    CUresult started = driver->init(0);
    if (started != CUDA_ERROR_NO_DEVICE &&
        (!cuda_check(driver, started, error, "the NVIDIA driver does not start") ||
         !cuda_check(driver, driver->device_count(count), error, "the GPUs cannot be counted")))
        return false;
    if (!*count)
        return fail(error, "the NVIDIA driver shows no GPU (is CUDA_VISIBLE_DEVICES set to none?)");
    return cuda_check(driver, driver->device_get(device, 0), error, "no first GPU");
}

bool cublaslt_open(CublasLt *table, Error *error) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    *table = (CublasLt){0};
    for (size_t i = 0; i < sizeof names / sizeof *names && !table->library; i++)
        table->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!table->library)
        return fail(
            error, "cuBLASLt, which multiplies matrices, was not found (libcublasLt.so.13 or .12): "
                   "install it (NVIDIA's package libcublas) or put its folder into "
                   "LD_LIBRARY_PATH");
    const LibrarySymbol symbols[] = {CUBLASLT_FUNCTIONS(SYMBOL)};
    if (library_symbols(table->library, symbols, sizeof symbols / sizeof *symbols, "libcublasLt",
                        error))
        return true;
    cublaslt_close(table);
    return false;
}

void cublaslt_close(CublasLt *table) {
    if (table->library) dlclose(table->library);
    *table = (CublasLt){0};
}

bool cuda_check(const CudaDriver *driver, CUresult result, Error *error, const char *format, ...) {
    if (result == CUDA_SUCCESS) return true;
    char what[256];
    const char *name = NULL, *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    driver->error_name(result, &name);
    driver->error_string(result, &text);
    return fail(error, "%s: %s (%s)", what, text ? text : "unknown error", name ? name : "?");
}
