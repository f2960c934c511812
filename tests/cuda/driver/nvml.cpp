/* What hearth reads of NVML, as NVIDIA's nvml.h declares it: a card at three quarters of its power. */
#include <cstring>

#include "chips.h"
#include "driver.h"

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

namespace driver {

constexpr nvmlReturn_t success = 0, uninitialised = 1, invalid_argument = 2, not_found = 6,
                       too_short = 7;

static int initialised; /* times */

static nvmlDevice_t the_device() {
    static char device;
    return reinterpret_cast<nvmlDevice_t>(&device);
}

static nvmlReturn_t check(nvmlDevice_t device) {
    if (!initialised) return uninitialised;
    if (device != the_device()) die("%p is no device of NVML", static_cast<void *>(device));
    return success;
}

} // namespace driver

using namespace driver;

API nvmlReturn_t nvmlInit_v2() {
    Call call(__func__);
    initialised++;
    return success;
}

API nvmlReturn_t nvmlShutdown() {
    Call call(__func__);
    if (!initialised) return uninitialised;
    initialised--;
    return success;
}

API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned bytes) {
    Call call(__func__);
    const char text[] = "580.65.06";
    if (!initialised) return uninitialised;
    if (bytes < sizeof text) return too_short;
    memcpy(version, text, sizeof text);
    return success;
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
    Call call(__func__);
    if (!initialised) return uninitialised;
    if (strcmp(id, "0000:01:00.0") && strcmp(id, "00000000:01:00.0")) return not_found;
    *device = the_device();
    return success;
}

API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius) {
    Call call(__func__);
    TRY(check(device));
    if (sensor != 0) return invalid_argument;
    *celsius = 61;
    return success;
}

API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
    Call call(__func__);
    TRY(check(device));
    *milliwatts = static_cast<unsigned>(chip().watts) * 750;
    return success;
}

API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts) {
    Call call(__func__);
    TRY(check(device));
    *milliwatts = static_cast<unsigned>(chip().watts) * 1000;
    return success;
}

API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int which,
                                                   unsigned *celsius) {
    Call call(__func__);
    TRY(check(device));
    if (which != 1) return invalid_argument; /* where it slows down */
    *celsius = 90;
    return success;
}

API nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device,
                                                          unsigned *milliwatts) {
    Call call(__func__);
    TRY(check(device));
    *milliwatts = static_cast<unsigned>(chip().watts) * 1000;
    return success;
}

API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                        unsigned long long *reasons) {
    Call call(__func__);
    TRY(check(device));
    *reasons = 0;
    return success;
}
