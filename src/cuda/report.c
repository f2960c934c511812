#include "cuda/report.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/images.h"
#include "cuda/nvml.h"

/* A chip runs what was compiled for its own generation or an earlier one of the same number: 8.9 runs 8.6. */
enum { JETSON_ORIN = 87 }; /* takes no image of another 8.x */

static bool compiled_for(const char *chips, int capability) {
    for (char *end; *chips; chips = end + strcspn(end, " ")) {
        int chip = (int)strtol(chips, &end, 10);
        if (chip / 10 == capability / 10 && chip <= capability && capability != JETSON_ORIN)
            return true;
        if (end == chips) break;
    }
    return false;
}

static bool read_gpu(CudaReport *report, const CudaDriver *driver, char bus[32], Error *error) {
    CUdevice device;
    int major = 0, minor = 0;
    size_t memory = 0;
    const CUdevice_attribute capability[] = {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                             CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR};
    if (!cuda_first_device(driver, &device, &report->gpus, error) ||
        !cuda_check(driver, driver->driver_version(&report->cuda), error,
                    "the driver does not say its version") ||
        !cuda_check(driver, driver->device_name(report->gpu, sizeof report->gpu, device), error,
                    "the GPU does not say its name") ||
        !cuda_check(driver, driver->device_attribute(&major, capability[0], device), error,
                    "%s does not say what it is", report->gpu) ||
        !cuda_check(driver, driver->device_attribute(&minor, capability[1], device), error,
                    "%s does not say what it is", report->gpu) ||
        !cuda_check(driver, driver->device_memory(&memory, device), error,
                    "%s does not say how much memory it has", report->gpu))
        return false;
    report->capability = 10 * major + minor;
    report->compiled = compiled_for(kernel_chips, report->capability);
    report->memory = (int64_t)memory;
    driver->device_bus_id(bus, 32, device);
    return true;
}

/* What is free can only be asked by who has a context. */
static void read_free_memory(CudaReport *report) {
    Error error;
    size_t memory_free, memory;
    const Gpu *gpu = gpu_open(&error);
    if (gpu && gpu_use(gpu, &error) &&
        gpu->driver.memory_info(&memory_free, &memory) == CUDA_SUCCESS)
        report->memory_free = (int64_t)memory_free;
}

static int read_number(int status, unsigned value, unsigned divisor) {
    return status == NVML_OK ? (int)(value / divisor) : -1;
}

/* Idling, and clocks that someone has set, slow nothing down: they are left out. */
static void slowed_text(unsigned long long slowed, char *text, size_t size) {
    static const struct {
        unsigned bit;
        const char *name;
    } reasons[] = {{NVML_SLOWED_BY_POWER_LIMIT, "its power limit"},
                   {NVML_SLOWED_BY_HARDWARE, "the hardware"},
                   {NVML_SLOWED_BY_HEAT, "heat"},
                   {NVML_SLOWED_BY_HEAT_HARDWARE, "heat (hardware)"},
                   {NVML_SLOWED_BY_POWER_BRAKE, "the power supply"}};
    size_t length = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (slowed & reasons[i].bit && length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "",
                                       reasons[i].name);
}

static void read_sensors(CudaReport *report, const char *bus) {
    Nvml nvml;
    NvmlDevice device;
    unsigned value = 0;
    unsigned long long reasons = 0;
    report->watched = nvml_open(&nvml, &report->not_watched);
    if (!report->watched) return;
    nvml.driver_version(report->driver_version, sizeof report->driver_version);
    if (nvml.device_by_bus(bus, &device) == NVML_OK) {
        int status = nvml.temperature(device, NVML_TEMPERATURE_OF_CHIP, &value);
        report->temperature = read_number(status, value, 1);
        status = nvml.threshold(device, NVML_THRESHOLD_SLOWDOWN, &value);
        report->slowdown_temperature = read_number(status, value, 1);
        status = nvml.power(device, &value);
        report->power = read_number(status, value, 1000);
        status = nvml.power_limit(device, &value);
        report->power_limit = read_number(status, value, 1000);
        status = nvml.power_default(device, &value);
        report->power_default = read_number(status, value, 1000);
        if (nvml.slowed(device, &reasons) == NVML_OK)
            slowed_text(reasons, report->slowed, sizeof report->slowed);
    }
    nvml_close(&nvml);
}

static void read_libraries(CudaReport *report) {
    Error error;
    CublasLt cublaslt;
    if (cublaslt_open(&cublaslt, &error)) {
        report->cublaslt = (int)cublaslt.version();
        cublaslt_close(&cublaslt);
    }
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int (*version)(int *) = NULL;
    if (nccl) *(void **)&version = dlsym(nccl, "ncclGetVersion");
    if (version && version(&report->nccl) != 0) report->nccl = -1;
    if (nccl) dlclose(nccl);
}

void cuda_report(CudaReport *report) {
    CudaDriver driver;
    char bus[32] = "";
    *report = (CudaReport){.built = true,
                           .cuda = -1,
                           .memory = -1,
                           .memory_free = -1,
                           .cublaslt = -1,
                           .nccl = -1,
                           .temperature = -1,
                           .slowdown_temperature = -1,
                           .power = -1,
                           .power_limit = -1,
                           .power_default = -1};
    snprintf(report->chips, sizeof report->chips, "%s", kernel_chips);
    read_libraries(report);
    if (cuda_driver_open(&driver, &report->no_driver)) {
        report->driver = read_gpu(report, &driver, bus, &report->no_driver);
        cuda_driver_close(&driver);
    }
    if (!report->driver) return;
    read_sensors(report, bus);
    report->usable = cuda_present(&report->not_usable);
    if (report->usable) read_free_memory(report);
}
