#include "device.h"

#include "base/file.h"
#include "base/random.h"

static CudaDriver cuda;
static CUmodule module;
static CUstream stream;
static int capability;

static void need(CUresult result) {
    Error error;
    if (!cuda_check(&cuda, result, &error, "the GPU")) fail_msg("%s", error.message);
}

void device_open(const char *image_path) {
    Error error;
    CUdevice device;
    CUcontext context;
    int major, minor;
    if (!cuda_driver_open(&cuda, &error)) {
        print_message("skipped: %s\n", error.message);
        exit(77);
    }
    need(cuda.init(0));
    need(cuda.device_get(&device, 0));
    need(cuda.context_retain(&context, device));
    need(cuda.context_set(context));
    need(cuda.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    need(cuda.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    capability = 10 * major + minor;
    need(cuda.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    FileMap image;
    assert_done(file_map(&image, image_path, &error), error);
    need(cuda.module_load(&module, image.data));
    file_unmap(&image);
}

void device_close(void) {
    CUdevice device;
    need(cuda.module_unload(module));
    need(cuda.stream_destroy(stream));
    need(cuda.device_get(&device, 0));
    need(cuda.context_release(device));
}

CUdeviceptr upload(const void *data, size_t bytes) {
    CUdeviceptr memory;
    need(cuda.allocate(&memory, bytes));
    need(cuda.copy_in(memory, data, bytes, stream));
    return memory;
}

CUdeviceptr unwritten(size_t bytes) {
    CUdeviceptr memory;
    need(cuda.allocate(&memory, bytes));
    return memory;
}

void download(void *data, CUdeviceptr memory, size_t bytes) {
    need(cuda.copy_out(data, memory, bytes, stream));
    need(cuda.stream_wait(stream));
}

void release(CUdeviceptr memory) {
    need(cuda.release(memory));
}

void launch_warp(const char *kernel, unsigned shared_bytes, void **arguments) {
    CUfunction function;
    need(cuda.module_function(&function, module, kernel));
    need(cuda.launch(function, 1, 1, 1, LANES, 1, 1, shared_bytes, stream, arguments, NULL));
}

int device_capability(void) {
    return capability;
}

int below(int bound) {
    static uint64_t draws;
    return (int)random_below(11, 0, draws++, (uint64_t)bound);
}
