/* Memory that the program has from the driver, and the copies between. */
#ifndef TEST_CUDA_MEMORY_H
#define TEST_CUDA_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cuda.h>

namespace driver {

enum class Kind { device, managed, pinned };

struct Allocation {
    Kind kind;
    uintptr_t address;
    size_t bytes;
    size_t charged; /* of the device's memory */
    bool freed;
    int64_t queued; /* pieces of work that will use it and have not run */
};

typedef std::vector<std::shared_ptr<Allocation>> Uses;

/* The live allocation that holds this byte; null when there is none. */
std::shared_ptr<Allocation> find_allocation(uintptr_t address);

/* Adds the allocation of `bytes` that a device may use to `uses`; false when they are not all inside one. `what`
 * is for the message. */
bool use_range(Uses &uses, const char *what, CUdeviceptr address, size_t bytes);

/* What was freed and is asked for ends the program. */
void check_live(const Uses &uses, const char *user);

/* The program cannot touch device memory except while one of these lives. */
class DeviceMemoryOpen {
  public:
    DeviceMemoryOpen();
    ~DeviceMemoryOpen();
};

} // namespace driver

#endif
