/* Memory: what is handed out, and what programs do wrong with it. */
#include "rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1000 };

static bool fresh_memory(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    float host[BYTES / sizeof(float)];
    DO(rig->cuda.copy_out(host, memory, BYTES, rig->stream));
    DO(rig->cuda.release(memory));
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        if (!isnan(host[i])) return false;
    return memory % 256 == 0;
}

static bool managed_memory(Rig *rig) {
    CUdeviceptr memory;
    DO(rig->cuda.allocate_managed(&memory, BYTES, CU_MEM_ATTACH_GLOBAL));
    float *values = (float *)memory;
    values[0] = 1;
    queue_add(rig, rig->stream, memory, memory, 2, 1);
    bool late = values[0] == 1;
    DO(rig->cuda.stream_wait(rig->stream));
    bool added = values[0] == 3;
    DO(rig->cuda.release(memory));
    return late && added;
}

static bool dereferences_device_memory(Rig *rig) {
    volatile float *memory = (float *)device_memory(rig, BYTES);
    return memory[0] == 0;
}

static bool kernel_past_the_end(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, 256);
    queue_add(rig, rig->stream, memory, memory, 1, 65);
    DO(rig->cuda.stream_wait(rig->stream));
    return true;
}

static bool copy_past_the_end(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    bool refused =
        FAILS(rig->cuda.fill_bytes(memory + 1, 0, BYTES, rig->stream), CUDA_ERROR_INVALID_VALUE);
    DO(rig->cuda.release(memory));
    return refused;
}

static bool foreign_pointer(Rig *rig) {
    char here[BYTES];
    return FAILS(rig->cuda.fill_bytes((CUdeviceptr)here, 0, BYTES, rig->stream),
                 CUDA_ERROR_INVALID_VALUE);
}

static bool pinned_past_the_end(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, 2 * BYTES);
    float *pinned = pinned_memory(rig, BYTES);
    DO(rig->cuda.copy_in(memory, pinned, 2 * BYTES, rig->stream));
    return true;
}

static bool frees_twice(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    DO(rig->cuda.release(memory));
    DO(rig->cuda.release(memory));
    return true;
}

static bool frees_with_the_other_function(Rig *rig) {
    DO(rig->cuda.release_host((void *)device_memory(rig, BYTES)));
    return true;
}

static bool frees_while_in_use(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    queue_add(rig, rig->stream, memory, memory, 1, 10);
    DO(rig->cuda.release(memory));
    return true;
}

static bool frees_pinned_while_in_use(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    float *pinned = pinned_memory(rig, BYTES);
    DO(rig->cuda.copy_out(pinned, memory, BYTES, rig->stream));
    DO(rig->cuda.release_host(pinned));
    return true;
}

static bool uses_what_was_freed(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    DO(rig->cuda.release(memory));
    queue_add(rig, rig->stream, memory, memory, 1, 10);
    return true;
}

static bool leaks(Rig *rig) {
    device_memory(rig, BYTES);
    CUevent event;
    DO(rig->cuda.event_create(&event, 0));
    return true;
}

/* All there is, in pieces, and no more. */
static bool takes_everything(Rig *rig) {
    size_t available, total, after;
    DO(rig->cuda.memory_info(&available, &total));
    size_t piece = available / 4 / (2 << 20) * (2 << 20);
    CUdeviceptr pieces[4], more;
    for (int i = 0; i < 4; i++) pieces[i] = device_memory(rig, piece);
    DO(rig->cuda.memory_info(&after, &total));
    bool refused = FAILS(rig->cuda.allocate(&more, piece), CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 4; i++) DO(rig->cuda.release(pieces[i]));
    return refused && available < total && after == available - 4 * piece;
}

static bool allocation_fails(Rig *rig) {
    CUdeviceptr first, second;
    DO(rig->cuda.allocate(&first, BYTES));
    bool refused = FAILS(rig->cuda.allocate(&second, BYTES), CUDA_ERROR_OUT_OF_MEMORY);
    DO(rig->cuda.release(first));
    return refused;
}

static bool allocates(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, 512);
    float *pinned = pinned_memory(rig, 64);
    DO(rig->cuda.release(memory));
    DO(rig->cuda.release_host(pinned));
    return true;
}

static bool without_context(Rig *rig) {
    CUdeviceptr memory;
    DO(rig->cuda.context_set(NULL));
    bool refused = FAILS(rig->cuda.allocate(&memory, BYTES), CUDA_ERROR_INVALID_CONTEXT);
    DO(rig->cuda.context_set(rig->context));
    return refused;
}

static void fresh_memory_holds_nan(void **state) {
    (void)state;
    expect(fresh_memory, RIGHT, NULL);
}

static void managed_memory_is_the_programs_too(void **state) {
    (void)state;
    expect(managed_memory, RIGHT, NULL);
}

static void touching_device_memory_ends_the_program(void **state) {
    (void)state;
    expect(dereferences_device_memory, DIED, "by the program itself");
    expect(kernel_past_the_end, DIED, "outside its allocation");
}

static void ranges_are_checked(void **state) {
    (void)state;
    expect(copy_past_the_end, RIGHT, "pass the end");
    expect(foreign_pointer, RIGHT, "no live memory");
    expect(pinned_past_the_end, DIED, "end of pinned memory");
}

static void freeing_is_checked(void **state) {
    (void)state;
    expect(frees_twice, DIED, "freed twice");
    expect(frees_with_the_other_function, DIED, "other function");
    expect(frees_while_in_use, DIED, "queued work");
    expect(frees_pinned_while_in_use, DIED, "queued work");
    expect(uses_what_was_freed, DIED, "no live memory");
}

static void leaks_are_reported(void **state) {
    (void)state;
    expect(leaks, DIED, "1 x 1000 bytes of device memory");
    expect(leaks, DIED, "1 x event");
}

static void memory_runs_out(void **state) {
    (void)state;
    expect_in(takes_everything, "TEST_GPU_MEMORY=67108864", RIGHT, "available");
    expect_in(allocation_fails, "TEST_GPU_FAULT=allocate:2", RIGHT, "TEST_GPU_FAULT");
}

static void allocations_are_logged(void **state) {
    (void)state;
    char environment[300], log[200] = "";
    const char *path = test_path("log");
    snprintf(environment, sizeof environment, "TEST_GPU_LOG=%s", path);
    expect_in(allocates, environment, RIGHT, NULL);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(log, 1, sizeof log - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(log, "device 512\npinned 64\ndevice -512\npinned -64\n"));
}

static void a_thread_needs_a_context(void **state) {
    (void)state;
    expect(without_context, RIGHT, "no current context");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_memory_holds_nan),
        cmocka_unit_test(managed_memory_is_the_programs_too),
        cmocka_unit_test(touching_device_memory_ends_the_program),
        cmocka_unit_test(ranges_are_checked),
        cmocka_unit_test(freeing_is_checked),
        cmocka_unit_test(leaks_are_reported),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(allocations_are_logged),
        cmocka_unit_test(a_thread_needs_a_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
