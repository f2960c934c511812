#include "cuda/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cuda/describe.h"
#include "cuda/executor.h"
#include "cuda/random_fill.h"
#include "cuda/scalars.h"
#include "cuda/workspace.h"

bool cuda_present(Error *why_not) {
    return gpu_open(why_not) != NULL;
}

static CUdeviceptr place(const Executor *executor, Operand operand) {
    if (operand.buffer < 0) return 0;
    bool on_host = executor->program->buffers[operand.buffer].space == SPACE_HOST;
    CUdeviceptr arena = on_host ? (CUdeviceptr)executor->host_arena : executor->arena;
    return arena + (CUdeviceptr)program_place(executor->program, operand);
}

static bool check(const Executor *executor, CUresult result, Error *error) {
    return cuda_check(&executor->gpu->driver, result, error, "%s failed", executor->gpu->name);
}

static bool run_operation(Executor *executor, int index, Error *error) {
    const Program *program = executor->program;
    const Operation *operation = &program->operations[index];
    Call call = {.executor = executor,
                 .operation = operation,
                 .workspace = place(executor, operation->workspace),
                 .scalars = executor->scalars,
                 .storage = program->storage,
                 .stream = executor->step,
                 .error = error};
    for (int i = 0; i < OPERATION_OUTPUTS; i++)
        call.out[i] = place(executor, operation->outputs[i]);
    for (int i = 0; i < OPERATION_INPUTS; i++) call.in[i] = place(executor, operation->inputs[i]);
    return launch_operation(&call) || fail_within(error, "%s", operation_name(operation->kind));
}

/* A section as one graph: launched again each time, with what changes in device memory. */
static bool capture(Executor *executor, SectionKind kind, Error *error) {
    const CudaDriver *driver = &executor->gpu->driver;
    Section section = executor->program->sections[kind];
    CUgraph graph = NULL;
    if (!section.count) return true;
    if (!check(executor, driver->capture_begin(executor->step, CU_STREAM_CAPTURE_MODE_RELAXED),
               error))
        return false;
    bool done = true;
    for (int o = section.first; done && o < section.first + section.count; o++)
        done = run_operation(executor, o, error);
    Error ending;
    bool ended =
        check(executor, driver->capture_end(executor->step, &graph), done ? error : &ending);
    done = done && ended &&
           check(executor, driver->graph_instantiate(&executor->graphs[kind], graph, 0), error);
    if (graph) driver->graph_destroy(graph);
    return done;
}

static bool allocate_device(Executor *executor, CUdeviceptr *memory, int64_t bytes, Error *error) {
    const Gpu *gpu = executor->gpu;
    size_t size = bytes > 0 ? (size_t)bytes : 1;
    CUresult result = gpu->unified
                          ? gpu->driver.allocate_managed(memory, size, CU_MEM_ATTACH_GLOBAL)
                          : gpu->driver.allocate(memory, size);
    char needed[32];
    return cuda_check(&gpu->driver, result, error,
                      "%s of memory cannot be had on %s: close what else uses the GPU, or make do "
                      "with less (--memory, a shorter --seq-len, a smaller model)",
                      format_bytes(needed, bytes), gpu->name);
}

static void close_executor(Executor *executor) {
    if (!executor) return;
    const CudaDriver *driver = &executor->gpu->driver;
    if (executor->step) driver->stream_wait(executor->step);
    for (int s = 0; s < SECTIONS; s++)
        if (executor->graphs[s]) driver->graph_exec_destroy(executor->graphs[s]);
    matmuls_close(&executor->matmuls);
    staging_close(&executor->staging);
    for (int i = 0; i < COPIES_AT_ONCE; i++)
        if (executor->copied[i]) driver->event_destroy(executor->copied[i]);
    if (executor->copies) driver->stream_destroy(executor->copies);
    if (executor->host_arena) driver->release_host(executor->host_arena);
    stopwatch_close(&executor->watch);
    if (executor->step) driver->stream_destroy(executor->step);
    if (executor->beside) driver->release(executor->beside);
    if (executor->arena) driver->release(executor->arena);
    free(executor);
}

/* Host memory that the copies of offload go to and come from. */
static bool allocate_host(Executor *executor, Error *error) {
    const CudaDriver *driver = &executor->gpu->driver;
    int64_t bytes = executor->program->host_bytes;
    void *arena = NULL;
    char needed[32];
    if (!bytes) return true;
    if (!cuda_check(driver, driver->allocate_host(&arena, (size_t)bytes, 0), error,
                    "%s of pinned host memory cannot be had for offload (see 'ulimit -l', or give "
                    "--offload none)",
                    format_bytes(needed, bytes)))
        return false;
    executor->host_arena = memset(arena, 0, (size_t)bytes);
    bool done =
        check(executor, driver->stream_create(&executor->copies, CU_STREAM_NON_BLOCKING), error);
    for (int i = 0; done && i < COPIES_AT_ONCE; i++)
        done = check(executor, driver->event_create(&executor->copied[i], CU_EVENT_DISABLE_TIMING),
                     error);
    return done;
}

static bool allocate_all(Executor *executor, Error *error) {
    const Program *program = executor->program;
    const CudaDriver *driver = &executor->gpu->driver;
    if (!allocate_host(executor, error) ||
        !allocate_device(executor, &executor->arena, program->arena_bytes, error) ||
        !allocate_device(executor, &executor->beside, beside_device_bytes(program), error) ||
        !check(executor, driver->stream_create(&executor->step, CU_STREAM_NON_BLOCKING), error) ||
        !stopwatch_open(&executor->watch, executor->gpu, executor->step, error))
        return false;
    executor->scalars = executor->beside + (CUdeviceptr)staging_slots_bytes(program);
    return staging_open(&executor->staging, executor->gpu, executor->step, executor->beside,
                        staging_bytes(program), error);
}

static bool clear(Executor *executor, Error *error) {
    int64_t bytes = executor->program->arena_bytes;
    return !bytes || check(executor,
                           executor->gpu->driver.fill_bytes(executor->arena, 0, (size_t)bytes,
                                                            executor->step),
                           error);
}

static bool prepare(Executor *executor, Error *error) {
    bool done = allocate_all(executor, error) &&
                random_fill(executor->gpu, executor->arena, executor->program->arena_bytes,
                            executor->step, error) &&
                matmuls_open(&executor->matmuls, executor->gpu, executor->program, executor->step,
                             executor->arena, error) &&
                clear(executor, error);
    for (int s = 0; done && s < SECTIONS; s++) done = capture(executor, (SectionKind)s, error);
    return done;
}

static Executor *open_executor(const Program *program, Error *error) {
    const Gpu *gpu = gpu_open(error);
    Executor *executor = gpu && gpu_use(gpu, error) ? allocate(1, sizeof *executor, error) : NULL;
    if (!executor) return NULL;
    executor->program = program;
    executor->gpu = gpu;
    if (prepare(executor, error)) return executor;
    close_executor(executor);
    return NULL;
}

_Static_assert(sizeof(CudaScalars) <= STAGING_ALIGNMENT, "beside.h leaves them that much");

/* The scalars travel as a kernel's argument, which the driver copies when it is launched. */
static bool set_scalars(Executor *executor, const StepScalars *scalars, Error *error) {
    CudaScalars value = {.learning_rate = scalars->learning_rate,
                         .gradient_scale = scalars->gradient_scale,
                         .momentum = scalars->momentum,
                         .weight_decay = scalars->weight_decay,
                         .step = scalars->step,
                         .seed = scalars->seed,
                         .position = scalars->position};
    Call call = {.executor = executor, .stream = executor->step, .error = error};
    void *arguments[] = {&value, &executor->scalars};
    return launch_only(&call, "set_scalars", (Grid){1, 1, 1}, 1, 0, arguments);
}

/* One operation after the other, each between two events. */
static bool run_profiled(Executor *executor, SectionKind kind, Error *error) {
    Section section = executor->program->sections[kind];
    for (int o = section.first; o < section.first + section.count; o++) {
        double seconds;
        if (!stopwatch_start(&executor->watch, error) || !run_operation(executor, o, error) ||
            !stopwatch_stop(&executor->watch, &seconds, error))
            return false;
        executor->profile[o] += seconds;
    }
    return true;
}

static bool report_failure(Executor *executor, Error *error) {
    *error = executor->failure;
    return false;
}

static bool run_section(Executor *executor, SectionKind kind, const StepScalars *scalars,
                        Error *error) {
    if (executor->failed) return report_failure(executor, error);
    if (!executor->graphs[kind]) return true; /* the program has no such section */
    if (!set_scalars(executor, scalars, error)) return false;
    if (executor->profile) return run_profiled(executor, kind, error);
    return check(executor,
                 executor->gpu->driver.graph_launch(executor->graphs[kind], executor->step), error);
}

static bool wait(Executor *executor, Error *error) {
    return check(executor, executor->gpu->driver.stream_wait(executor->step), error);
}

static void upload(Executor *executor, int buffer, int64_t offset, const void *data,
                   int64_t bytes) {
    if (executor->failed) return;
    const Buffer *target = &executor->program->buffers[buffer];
    CUdeviceptr to = place(executor, whole(buffer)) + (CUdeviceptr)offset;
    if (target->space == SPACE_HOST) {
        executor->failed = !wait(executor, &executor->failure);
        if (!executor->failed) memcpy((void *)to, data, (size_t)bytes);
        return;
    }
    bool input = target->kind == BUFFER_INPUT && bytes <= executor->staging.bytes;
    executor->failed =
        !(input ? staging_input(&executor->staging, to, data, bytes, &executor->failure)
                : staging_upload(&executor->staging, to, data, bytes, &executor->failure));
}

static bool download(Executor *executor, int buffer, int64_t offset, void *data, int64_t bytes,
                     Error *error) {
    if (executor->failed) return report_failure(executor, error);
    CUdeviceptr from = place(executor, whole(buffer)) + (CUdeviceptr)offset;
    if (executor->program->buffers[buffer].space == SPACE_HOST) {
        if (!wait(executor, error)) return false;
        memcpy(data, (const void *)from, (size_t)bytes);
        return true;
    }
    return staging_download(&executor->staging, from, data, bytes, error);
}

static void profile(Executor *executor, double *seconds) {
    executor->profile = seconds;
}

const Backend backend_cuda = {
    .name = "cuda",
    .workspace = cuda_workspace,
    .describe = cuda_describe,
    .measure = cuda_measure,
    .beside = cuda_beside,
    .open = open_executor,
    .close = close_executor,
    .run = run_section,
    .upload = upload,
    .download = download,
    .profile = profile,
};
