#include "context.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "chips.h"
#include "streams.h"

namespace driver {

static bool initialised;
static int retained; /* holders of the primary context */
static CUresult failure = CUDA_SUCCESS;
static std::string leaks;
static thread_local bool context_current;

static CUcontext primary() {
    static char context;
    return reinterpret_cast<CUcontext>(&context);
}

static CUresult need_device(CUdevice device) {
    if (!initialised) return refuse(CUDA_ERROR_NOT_INITIALIZED, "cuInit() was not called");
    if (device != 0) return refuse(CUDA_ERROR_INVALID_DEVICE, "there is no device %d", device);
    return CUDA_SUCCESS;
}

CUresult ready() {
    if (!initialised) return refuse(CUDA_ERROR_NOT_INITIALIZED, "cuInit() was not called");
    if (!retained) return refuse(CUDA_ERROR_INVALID_CONTEXT, "the context was released");
    if (!context_current) {
        return refuse(CUDA_ERROR_INVALID_CONTEXT,
                      "this thread has no current context (cuCtxSetCurrent)");
    }
    return failure;
}

void fail_context(CUresult error) {
    failure = error;
}

void report_leak(int64_t count, const char *noun) {
    if (count) leaks += "\n  " + std::to_string(count) + " x " + noun;
}

static void end_context() {
    if (failure) return; /* every call fails, those that give back too: the process is to end */
    finish_all();
    leaks.clear();
    report_memory_leaks();
    report_stream_leaks();
    report_event_leaks();
    report_graph_leaks();
    report_module_leaks();
    if (!leaks.empty())
        die("the context ends, and the program has not given back:%s", leaks.c_str());
}

} // namespace driver

using namespace driver;

API CUresult cuInit(unsigned flags) {
    Call call(__func__);
    if (flags) return refuse(CUDA_ERROR_INVALID_VALUE, "flags must be 0");
    if (fault_of("device", 0))
        return refuse(CUDA_ERROR_NO_DEVICE, "no device, as TEST_GPU_FAULT asks");
    chip();
    initialised = true;
    return CUDA_SUCCESS;
}

API CUresult cuDriverGetVersion(int *version) {
    Call call(__func__);
    *version = fault_of("driver", 12) ? 12080 : CUDA_VERSION;
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count) {
    Call call(__func__);
    TRY(need_device(0));
    *count = 1;
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    Call call(__func__);
    TRY(need_device(ordinal));
    *device = 0;
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
    Call call(__func__);
    TRY(need_device(device));
    snprintf(name, static_cast<size_t>(bytes), "%s", chip().product);
    return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    Call call(__func__);
    TRY(need_device(device));
    *bytes = static_cast<size_t>(device_memory());
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device) {
    Call call(__func__);
    TRY(need_device(device));
    if (bytes < 13)
        return refuse(CUDA_ERROR_INVALID_VALUE, "a bus id takes 13 bytes, not %d", bytes);
    snprintf(id, static_cast<size_t>(bytes), "0000:01:00.0");
    return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    Call call(__func__);
    TRY(need_device(device));
    retained++;
    *context = primary();
    return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    Call call(__func__);
    TRY(need_device(device));
    if (!retained) return refuse(CUDA_ERROR_INVALID_CONTEXT, "released more often than retained");
    if (--retained == 0) end_context();
    return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context) {
    Call call(__func__);
    TRY(need_device(0));
    if (context && (context != primary() || !retained))
        die("%p is no live context", (void *)context);
    context_current = context != nullptr;
    return CUDA_SUCCESS;
}
