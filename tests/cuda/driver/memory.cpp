#include "memory.h"

#include <cstring>
#include <map>

#include "arena.h"
#include "chips.h"
#include "context.h"
#include "host/runtime.h"
#include "streams.h"

namespace driver {

static std::map<uintptr_t, std::shared_ptr<Allocation>> live; /* by address */
static int64_t charged;

/* What a context takes before the first allocation. */
static int64_t kept_by_driver() {
    return std::min<int64_t>(device_memory() / 16, int64_t{512} << 20);
}

static int64_t available() {
    return device_memory() - kept_by_driver() - charged;
}

/* Large allocations take whole pages of 2 MiB. */
static size_t charge_of(size_t bytes) {
    size_t granule = bytes >= size_t{1} << 20 ? size_t{2} << 20 : 512;
    return (bytes + granule - 1) / granule * granule;
}

static const char *name_of(Kind kind) {
    static const char *names[] = {"device", "managed", "pinned"};
    return names[static_cast<int>(kind)];
}

std::shared_ptr<Allocation> find_allocation(uintptr_t address) {
    auto after = live.upper_bound(address);
    if (after == live.begin()) return nullptr;
    auto found = std::prev(after)->second;
    return address < found->address + found->bytes ? found : nullptr;
}

bool use_range(Uses &uses, const char *what, CUdeviceptr address, size_t bytes) {
    auto found = find_allocation(address);
    if (!found) {
        complain("%s: 0x%llx is no live memory of the device", what, address);
        return false;
    }
    if (bytes > found->address + found->bytes - address) {
        complain("%s: %zu bytes at 0x%llx pass the end of an allocation of %zu bytes at 0x%zx",
                 what, bytes, address, found->bytes, found->address);
        return false;
    }
    uses.push_back(found);
    return true;
}

void check_live(const Uses &uses, const char *user) {
    for (const auto &allocation : uses) {
        if (allocation->freed) {
            die("%s uses %zu bytes at 0x%zx, which were freed", user, allocation->bytes,
                allocation->address);
        }
    }
}

static void protect_all(bool accessible) {
    for (const auto &entry : live) {
        const Allocation &allocation = *entry.second;
        if (allocation.kind != Kind::device) continue;
        arena_protect(reinterpret_cast<void *>(allocation.address), allocation.bytes, accessible);
    }
}

static int openers;

DeviceMemoryOpen::DeviceMemoryOpen() {
    if (openers++ == 0) protect_all(true);
}

DeviceMemoryOpen::~DeviceMemoryOpen() {
    if (--openers == 0) protect_all(false);
}

static void *take(Kind kind, size_t bytes) {
    if (kind == Kind::device) return arena_allocate(bytes);
    return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
}

/* CUDA_ERROR_OUT_OF_MEMORY when there is not enough. */
static CUresult allocate(Kind kind, size_t bytes, void **result) {
    TRY(ready());
    TRY(need_no_capture());
    if (!result) return refuse(CUDA_ERROR_INVALID_VALUE, "no place for the pointer");
    if (!bytes) return refuse(CUDA_ERROR_INVALID_VALUE, "0 bytes asked for");
    if (fault_now(kind == Kind::pinned ? "pinned" : "allocate")) {
        return refuse(CUDA_ERROR_OUT_OF_MEMORY, "no %zu bytes, as TEST_GPU_FAULT asks", bytes);
    }
    size_t charge = kind == Kind::pinned ? 0 : charge_of(bytes);
    if (charge && static_cast<int64_t>(charge) > available()) {
        return refuse(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked for, %lld of %lld available",
                      bytes, static_cast<long long>(available()),
                      static_cast<long long>(device_memory()));
    }
    void *memory = take(kind, bytes);
    if (!memory) return refuse(CUDA_ERROR_OUT_OF_MEMORY, "this machine has no %zu bytes", bytes);
    uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    live[address] =
        std::make_shared<Allocation>(Allocation{kind, address, bytes, charge, false, 0});
    charged += static_cast<int64_t>(charge);
    log_line("%s %zu", name_of(kind), bytes);
    host::poison(memory, bytes);
    host::note_allocation(memory, bytes);
    if (kind == Kind::device) arena_protect(memory, bytes, false);
    *result = memory;
    return CUDA_SUCCESS;
}

static CUresult release(uintptr_t address, bool of_device) {
    TRY(ready());
    TRY(need_no_capture());
    auto found = live.find(address);
    if (found == live.end())
        die("0x%zx is no live allocation: freed twice, or not the driver's", address);
    Allocation &allocation = *found->second;
    if ((allocation.kind != Kind::pinned) != of_device) {
        die("0x%zx is %s memory and is freed with the other function", address,
            name_of(allocation.kind));
    }
    if (allocation.queued) {
        die("%zu bytes at 0x%zx are freed while %lld pieces of queued work use them: synchronise "
            "first",
            allocation.bytes, address, static_cast<long long>(allocation.queued));
    }
    allocation.freed = true;
    charged -= static_cast<int64_t>(allocation.charged);
    log_line("%s -%zu", name_of(allocation.kind), allocation.bytes);
    void *memory = reinterpret_cast<void *>(address);
    host::note_release(memory);
    if (allocation.kind == Kind::device)
        arena_release(memory, allocation.bytes);
    else
        free(memory);
    live.erase(found);
    return CUDA_SUCCESS;
}

void report_memory_leaks() {
    for (const auto &entry : live) {
        const Allocation &allocation = *entry.second;
        std::string noun =
            std::to_string(allocation.bytes) + " bytes of " + name_of(allocation.kind) + " memory";
        report_leak(1, noun.c_str());
    }
}

} // namespace driver

using namespace driver;

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    Call call(__func__);
    TRY(ready());
    *free_bytes = static_cast<size_t>(available());
    *total = static_cast<size_t>(device_memory());
    return CUDA_SUCCESS;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    Call call(__func__);
    void *memory;
    TRY(allocate(Kind::device, bytes, &memory));
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
}

API CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
    Call call(__func__);
    if (flags != CU_MEM_ATTACH_GLOBAL) return refuse(CUDA_ERROR_INVALID_VALUE, "flags %u", flags);
    void *memory;
    TRY(allocate(Kind::managed, bytes, &memory));
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
}

API CUresult cuMemFree_v2(CUdeviceptr address) {
    Call call(__func__);
    return release(address, true);
}

API CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    Call call(__func__);
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (flags & ~known) return refuse(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    return allocate(Kind::pinned, bytes, memory);
}

API CUresult cuMemFreeHost(void *memory) {
    Call call(__func__);
    return release(reinterpret_cast<uintptr_t>(memory), false);
}
