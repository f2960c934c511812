/* NVML, which watches GPUs, as a table of functions opened at run time. The declarations are our own:
 * it comes with the driver, its header does not. */
#ifndef HEARTH_CUDA_NVML_H
#define HEARTH_CUDA_NVML_H

#include "base/error.h"

typedef struct NvmlDeviceHandle *NvmlDevice;

enum { NVML_OK = 0, NVML_TEMPERATURE_OF_CHIP = 0, NVML_THRESHOLD_SLOWDOWN = 1 };

/* Bits of the reasons for a clock below the highest; those left out (1: idle, 2: set by an application)
 * slow nothing down. */
enum {
    NVML_SLOWED_BY_POWER_LIMIT = 0x4,
    NVML_SLOWED_BY_HARDWARE = 0x8,
    NVML_SLOWED_BY_HEAT = 0x20,
    NVML_SLOWED_BY_HEAT_HARDWARE = 0x40,
    NVML_SLOWED_BY_POWER_BRAKE = 0x80
};

/* X(member, exported name, parameters); all return a status, NVML_OK or an error. */
#define NVML_FUNCTIONS(X) \
    X(init, "nvmlInit_v2", (void)) \
    X(shutdown, "nvmlShutdown", (void)) \
    X(driver_version, "nvmlSystemGetDriverVersion", (char *text, unsigned size)) \
    X(device_by_bus, "nvmlDeviceGetHandleByPciBusId_v2", (const char *bus, NvmlDevice *device)) \
    X(temperature, "nvmlDeviceGetTemperature", (NvmlDevice device, int sensor, unsigned *celsius)) \
    X(threshold, "nvmlDeviceGetTemperatureThreshold", \
      (NvmlDevice device, int which, unsigned *celsius)) \
    X(power, "nvmlDeviceGetPowerUsage", (NvmlDevice device, unsigned *milliwatts)) \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (NvmlDevice device, unsigned *milliwatts)) \
    X(power_default, "nvmlDeviceGetPowerManagementDefaultLimit", \
      (NvmlDevice device, unsigned *milliwatts)) \
    X(slowed, "nvmlDeviceGetCurrentClocksEventReasons", \
      (NvmlDevice device, unsigned long long *reasons))

#define NVML_MEMBER(member, name, parameters) int(*member) parameters;

typedef struct Nvml {
    void *library;
    NVML_FUNCTIONS(NVML_MEMBER)
} Nvml;

/* libnvidia-ml.so.1, started. */
bool nvml_open(Nvml *nvml, Error *error);
void nvml_close(Nvml *nvml);

#endif
