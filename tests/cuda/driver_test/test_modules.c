/* Images, kernels and the limits of launches; the chips. */
#include "rig.h"

#include <string.h>

static bool loads(Rig *rig, int kind, unsigned architecture, uint64_t flags, CUresult expected) {
    void *image = make_image(kind, architecture, flags);
    CUmodule module;
    bool as_expected = FAILS(rig->cuda.module_load(&module, image), expected);
    if (as_expected && !expected) DO(rig->cuda.module_unload(module));
    free(image);
    return as_expected;
}

static bool images_on_rtx_5090(Rig *rig) {
    const CUresult none = CUDA_ERROR_NO_BINARY_FOR_GPU;
    return loads(rig, PART_ELF, 120, 0, CUDA_SUCCESS) &&
           loads(rig, PART_ELF, 120, PART_FAMILY, CUDA_SUCCESS) &&
           loads(rig, PART_ELF, 120, PART_ONE_CHIP, CUDA_SUCCESS) &&
           loads(rig, PART_ELF, 121, 0, none) && loads(rig, PART_ELF, 90, 0, none) &&
           loads(rig, PART_PTX, 90, 0, CUDA_SUCCESS) &&
           loads(rig, PART_PTX, 100, PART_FAMILY, none) && loads(rig, PART_PTX, 121, 0, none);
}

static bool images_on_dgx_spark(Rig *rig) {
    const CUresult none = CUDA_ERROR_NO_BINARY_FOR_GPU;
    return loads(rig, PART_ELF, 120, PART_FAMILY, CUDA_SUCCESS) &&
           loads(rig, PART_ELF, 120, PART_ONE_CHIP, none) &&
           loads(rig, PART_ELF, 120, 0, CUDA_SUCCESS);
}

static bool images_on_rtx_3090(Rig *rig) {
    return loads(rig, PART_ELF, 80, 0, CUDA_SUCCESS) &&
           loads(rig, PART_ELF, 89, 0, CUDA_ERROR_NO_BINARY_FOR_GPU);
}

static bool bad_images(Rig *rig) {
    CUmodule module;
    CUfunction function;
    char *image = make_image(PART_ELF, 120, 0);
    uint64_t size = 1 << 20;
    memcpy(image + 24, &size, sizeof size); /* of the part */
    bool refused = FAILS(rig->cuda.module_load(&module, "text"), CUDA_ERROR_INVALID_IMAGE) &&
                   FAILS(rig->cuda.module_load(&module, image), CUDA_ERROR_INVALID_IMAGE) &&
                   FAILS(rig->cuda.module_function(&function, rig->module, "driver_probe"),
                         CUDA_ERROR_NOT_FOUND);
    free(image);
    return refused;
}

static CUresult launch_shape(Rig *rig, unsigned grid, unsigned grid_y, unsigned threads,
                             unsigned shared) {
    CUdeviceptr none = 0;
    float term = 0;
    int64_t count = 0;
    void *arguments[] = {&none, &none, &term, &count};
    return rig->cuda.launch(rig->add, grid, grid_y, 1, threads, 1, 1, shared, rig->stream,
                            arguments, NULL);
}

static bool launch_limits(Rig *rig) {
    const CUresult invalid = CUDA_ERROR_INVALID_VALUE;
    const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    bool right = FAILS(launch_shape(rig, 0, 1, 32, 0), invalid) &&
                 FAILS(launch_shape(rig, 1, 65536, 32, 0), invalid) &&
                 FAILS(launch_shape(rig, 1, 1, 257, 0), invalid) &&
                 FAILS(launch_shape(rig, 1, 1, 0, 0), invalid) &&
                 FAILS(launch_shape(rig, 1, 1, 32, 49152), CUDA_SUCCESS) &&
                 FAILS(launch_shape(rig, 1, 1, 32, 49153), invalid) &&
                 FAILS(rig->cuda.function_set(rig->add, dynamic, 101377), invalid);
    DO(rig->cuda.function_set(rig->add, dynamic, 101376));
    return right && FAILS(launch_shape(rig, 1, 1, 32, 101376), CUDA_SUCCESS);
}

static bool passes_host_memory(Rig *rig) {
    float here[32];
    queue_add(rig, rig->stream, (CUdeviceptr)here, (CUdeviceptr)here, 1, 32);
    return true;
}

static bool passes_too_few_parameters(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, 4);
    void *arguments[] = {&memory, &memory, NULL, NULL};
    DO(rig->cuda.launch(rig->add, 1, 1, 1, 32, 1, 1, 0, rig->stream, arguments, NULL));
    return true;
}

static bool launches_of_an_unloaded_module(Rig *rig) {
    DO(rig->cuda.module_unload(rig->module));
    launch_shape(rig, 1, 1, 32, 0);
    return true;
}

static int attribute(Rig *rig, CUdevice_attribute which) {
    int value;
    DO(rig->cuda.device_attribute(&value, which, 0));
    return value;
}

static bool is_dgx_spark(Rig *rig) {
    char name[64];
    size_t bytes;
    DO(rig->cuda.device_name(name, sizeof name, 0));
    DO(rig->cuda.device_memory(&bytes, 0));
    return !strcmp(name, "NVIDIA GB10") && bytes > (size_t)100 << 30 &&
           attribute(rig, CU_DEVICE_ATTRIBUTE_INTEGRATED) == 1 &&
           attribute(rig, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 1 &&
           attribute(rig, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == 48;
}

static bool is_h100(Rig *rig) {
    return attribute(rig, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9 &&
           attribute(rig, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 232448;
}

static void images_serve_their_chips(void **state) {
    (void)state;
    expect(images_on_rtx_5090, RIGHT, "in an image for sm_90");
    expect_in(images_on_dgx_spark, "TEST_GPU_CHIP=dgx-spark", RIGHT, NULL);
    expect_in(images_on_rtx_3090, "TEST_GPU_CHIP=rtx-3090", RIGHT, NULL);
    expect(bad_images, RIGHT, "damaged");
}

static void launches_have_limits(void **state) {
    (void)state;
    expect(launch_limits, RIGHT, "cuFuncSetAttribute allowed 49152");
}

static void parameters_are_checked(void **state) {
    (void)state;
    expect(passes_host_memory, DIED, "memory of the program");
    expect(passes_too_few_parameters, DIED, "parameter 2 of 4 is null");
    expect(launches_of_an_unloaded_module, DIED, "was destroyed");
}

static void it_poses_as_a_chip(void **state) {
    (void)state;
    expect_in(is_dgx_spark, "TEST_GPU_CHIP=dgx-spark", RIGHT, NULL);
    expect_in(is_h100, "TEST_GPU_CHIP=h100", RIGHT, NULL);
    expect_in(is_h100, "TEST_GPU_CHIP=voodoo", DIED, "is none of rtx-5090");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_serve_their_chips),
        cmocka_unit_test(launches_have_limits),
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(it_poses_as_a_chip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
