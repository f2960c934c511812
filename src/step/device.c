#include "step/device.h"

#include <stdio.h>
#include <strings.h>

/* Vendor figures: dense bf16 TFLOP/s with fp32 accumulation, fp32 TFLOP/s, GB/s; the MiB that the driver
 * shows; and the GB/s of copies that the bus gives in practice (PCIe 5 or 4 with 16 lanes; 0: one memory
 * for all). */
static const struct {
    const char *name;
    double bf16, fp32, bandwidth;
    int64_t mebibytes;
    double host_bandwidth;
} devices[] = {
    {"rtx-5090", 209.5, 104.8, 1792, 32606, 50}, {"rtx-5080", 112.6, 56.3, 960, 16302, 50},
    {"rtx-5070-ti", 87.9, 43.9, 896, 16302, 50}, {"rtx-4090", 165.2, 82.6, 1008, 24217, 22},
    {"rtx-3090", 71, 35.6, 936, 24268, 22},      {"dgx-spark", 119, 31, 273, 122572, 0},
    {"a100", 312, 19.5, 2039, 81153, 22},        {"h100", 989, 67, 3350, 81079, 50},
    {"h200", 989, 67, 4800, 143156, 50},         {"b200", 2250, 80, 8000, 182642, 50},
};
enum { DEVICES = sizeof devices / sizeof *devices };

const char *const *device_names(void) {
    static const char *names[DEVICES + 1];
    for (int i = 0; i < DEVICES; i++) names[i] = devices[i].name;
    return names;
}

bool device_find(Device *device, const char *name, Dtype storage, Error *error) {
    char known[256] = "";
    for (int i = 0; i < DEVICES; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 devices[i].name);
        if (strcasecmp(devices[i].name, name) != 0) continue;
        double matmul = storage == DTYPE_F32 ? devices[i].fp32 : devices[i].bf16;
        *device = (Device){.matmul_flops = 1e12 * matmul,
                           .efficiency = 0.8,
                           .vector_flops = 1e12 * devices[i].fp32,
                           .bandwidth = 0.9e9 * devices[i].bandwidth,
                           .host_bandwidth = 1e9 * devices[i].host_bandwidth,
                           .launch = 3e-6,
                           .memory = devices[i].mebibytes << 20,
                           .driver_bytes = DRIVER_BYTES};
        snprintf(device->name, sizeof device->name, "%s", devices[i].name);
        return true;
    }
    return fail(error, "device '%s' is not known; choose this, cpu, cuda or one of %s", name,
                known);
}
