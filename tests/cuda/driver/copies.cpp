/* Copies and fills. */
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "chips.h"
#include "host/runtime.h"
#include "memory.h"
#include "streams.h"

namespace driver {

constexpr double pcie_gigabytes = 50; /* a second, which is bytes a nanosecond */

static double host_copy_time(size_t bytes) {
    return 2000 +
           static_cast<double>(bytes) / (chip().integrated ? chip().gigabytes : pcie_gigabytes);
}

static double device_time(size_t bytes) {
    return 2000 + static_cast<double>(bytes) / chip().gigabytes;
}

/* Whether the device can reach this memory of the program by itself: adds it to uses. */
static bool is_pinned(Uses &uses, const void *memory, size_t bytes) {
    uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    auto found = find_allocation(address);
    if (!found) return false;
    if (found->kind == Kind::device)
        die("%p is device memory, where the program's was expected", memory);
    if (!use_range(uses, "host memory", address, bytes))
        die("the copy passes the end of pinned memory");
    return true;
}

static CUresult need_range(Uses &uses, const char *what, CUdeviceptr address, size_t bytes) {
    return use_range(uses, what, address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void *pointer(CUdeviceptr address) {
    return reinterpret_cast<void *>(address);
}

/* Pinned memory that a copy to the host is on its way to: the program sees 0xff bytes there, the device what
 * was there before. */
struct Hidden {
    std::vector<char> before;
    int copies = 0; /* on their way */
};
static std::map<char *, Hidden> hidden;

static void hide(void *memory, size_t bytes) {
    char *first = static_cast<char *>(memory);
    Hidden &range = hidden[first];
    if (range.copies++ == 0) range.before.assign(first, first + bytes);
    memset(memory, 0xff, bytes);
}

static void arrive(void *memory, const void *data, size_t bytes) {
    memcpy(memory, data, bytes);
    auto range = hidden.find(static_cast<char *>(memory));
    if (range == hidden.end()) return;
    char *first = static_cast<char *>(memory);
    range->second.before.assign(first, first + bytes);
    if (--range->second.copies == 0) hidden.erase(range);
}

/* Reads pinned memory as the device does. */
static void read_pinned(void *to, const void *memory, size_t bytes) {
    memcpy(to, memory, bytes);
    const char *first = static_cast<const char *>(memory);
    for (const auto &[start, range] : hidden) {
        const char *from = std::max<const char *>(first, start);
        const char *end = std::min<const char *>(first + bytes, start + range.before.size());
        if (from < end)
            memcpy(static_cast<char *>(to) + (from - first), range.before.data() + (from - start),
                   static_cast<size_t>(end - from));
    }
}

} // namespace driver

using namespace driver;

/* From pageable memory the driver takes the bytes before it returns; pinned memory is read when the copy runs,
 * and must not change until then. */
API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    Call call(__func__);
    TRY(ready());
    Uses uses;
    TRY(need_range(uses, "target", to, bytes));
    if (is_pinned(uses, from, bytes)) {
        return submit(stream, {"copy to the device", host_copy_time(bytes), uses, [=] {
                                   host::trust(from, bytes);
                                   read_pinned(pointer(to), from, bytes);
                               }});
    }
    if (is_capturing(stream)) {
        invalidate_capture(stream);
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "a copy of pageable memory in a capture");
    }
    host::trust(from, bytes);
    const char *first = static_cast<const char *>(from);
    auto staged = std::make_shared<std::vector<char>>(first, first + bytes);
    return submit(stream, {"copy to the device", host_copy_time(bytes), uses,
                           [=] { memcpy(pointer(to), staged->data(), bytes); }});
}

/* To pageable memory the copy has happened when this returns; pinned memory holds 0xff bytes until it has. */
API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    Call call(__func__);
    TRY(ready());
    Uses uses;
    TRY(need_range(uses, "source", from, bytes));
    bool pinned = is_pinned(uses, to, bytes);
    bool capturing = is_capturing(stream);
    if (!pinned && capturing) {
        invalidate_capture(stream);
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "a copy to pageable memory in a capture");
    }
    auto copy = [=] {
        host::check_initialised(pointer(from), bytes);
        arrive(to, pointer(from), bytes);
    };
    auto queued = [=] { hide(to, bytes); };
    TRY(submit(stream, {"copy to the host", host_copy_time(bytes), uses, copy, queued}));
    if (!pinned) finish(stream);
    return ready();
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    Call call(__func__);
    TRY(ready());
    Uses uses;
    TRY(need_range(uses, "target", to, bytes));
    TRY(need_range(uses, "source", from, bytes));
    if (to < from + bytes && from < to + bytes) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "source and target overlap");
    }
    return submit(stream, {"copy within the device", device_time(2 * bytes), uses,
                           [=] { memcpy(pointer(to), pointer(from), bytes); }});
}

API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    Call call(__func__);
    TRY(ready());
    Uses uses;
    TRY(need_range(uses, "target", to, bytes));
    return submit(stream, {"fill", device_time(bytes), uses, [=] {
                               memset(pointer(to), value, bytes);
                               host::trust(pointer(to), bytes);
                           }});
}
