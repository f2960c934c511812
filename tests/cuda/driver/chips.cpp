#include "chips.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "driver.h"

namespace driver {

/* clang-format off */
static const Chip chips[] = {
    {"rtx-5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 1536, 32606, 101376, 102400, 96, 2407, 14001, 512, 209.5, 1792, 575, false},
    {"rtx-5080", "NVIDIA GeForce RTX 5080", 12, 0, 84, 1536, 16302, 101376, 102400, 64, 2617, 15001, 256, 112.6, 960, 360, false},
    {"rtx-5070-ti", "NVIDIA GeForce RTX 5070 Ti", 12, 0, 70, 1536, 16302, 101376, 102400, 48, 2452, 14001, 256, 87.9, 896, 300, false},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 1536, 24217, 101376, 102400, 72, 2520, 10501, 384, 165.2, 1008, 450, false},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, 1536, 24268, 101376, 102400, 6, 1695, 9751, 384, 71, 936, 350, false},
    {"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 2048, 81153, 166912, 167936, 40, 1410, 1593, 5120, 312, 2039, 400, false},
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 2048, 81079, 232448, 233472, 50, 1980, 2619, 5120, 989, 3350, 700, false},
    {"h200", "NVIDIA H200", 9, 0, 132, 2048, 143156, 232448, 233472, 60, 1980, 3201, 6144, 989, 4800, 700, false},
    {"b200", "NVIDIA B200", 10, 0, 148, 2048, 182642, 232448, 233472, 126, 1965, 3996, 8192, 2250, 8000, 1000, false},
    {"dgx-spark", "NVIDIA GB10", 12, 1, 48, 1536, 122572, 101376, 102400, 24, 2418, 4266, 256, 119, 273, 140, true},
};
/* clang-format on */

static const Chip &choose() {
    const char *name = getenv("TEST_GPU_CHIP");
    std::string names;
    for (const Chip &candidate : chips) {
        if (!name || !strcmp(candidate.name, name)) return candidate;
        names += std::string(" ") + candidate.name;
    }
    die("TEST_GPU_CHIP=%s is none of%s", name, names.c_str());
}

const Chip &chip() {
    static const Chip &chosen = choose();
    return chosen;
}

int64_t device_memory() {
    const char *bytes = getenv("TEST_GPU_MEMORY");
    return bytes ? strtoll(bytes, nullptr, 10) : chip().mebibytes << 20;
}

struct Attribute {
    CUdevice_attribute which;
    int value;
};

static std::vector<Attribute> attributes(const Chip &chip) {
    return {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, chip.major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, chip.minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, chip.multiprocessors},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, chip.threads},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, chip.shared_block},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, chip.shared_multiprocessor},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, chip.l2_mebibytes << 20},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, chip.clock_mhz * 1000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, chip.memory_clock_mhz * 1000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, chip.bus_bits},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, chip.integrated},
        {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, chip.integrated},
        {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, chip.integrated},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, chip.integrated ? 1 : 2},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
        {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, chip.bus_bits > 1024},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    };
}

} // namespace driver

using namespace driver;

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
    Call call(__func__);
    if (device != 0) return refuse(CUDA_ERROR_INVALID_DEVICE, "there is no device %d", device);
    if (!value) return refuse(CUDA_ERROR_INVALID_VALUE, "no place for the value");
    for (const Attribute &attribute : attributes(chip())) {
        if (attribute.which != which) continue;
        *value = attribute.value;
        return CUDA_SUCCESS;
    }
    return refuse(CUDA_ERROR_INVALID_VALUE, "attribute %d is not modelled",
                  static_cast<int>(which));
}
