#include "cpu/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/units.h"
#include "cpu/executor.h"

/* The products that there are kernels for. */
static bool can_multiply(const Program *program, const Operation *operation, Error *error) {
    const Buffer *buffers = program->buffers;
    Dtype out = buffers[operation->outputs[0].buffer].dtype;
    bool operands = buffers[operation->inputs[0].buffer].dtype == program->storage &&
                    buffers[operation->inputs[1].buffer].dtype == program->storage;
    const Operand *addend = &operation->inputs[2], *to = &operation->outputs[0];
    bool adds_to_itself = addend->buffer == to->buffer && addend->offset == to->offset;
    if (operation->matmul.transpose_a
            ? operands && out == DTYPE_F32 && adds_to_itself && !operation->matmul.transpose_b
            : operands && (out == DTYPE_F32 || out == program->storage))
        return true;
    return fail(error,
                "the CPU backend has no such matmul to %s: a transposed left operand goes "
                "with an fp32 sum",
                dtype_name(out));
}

static int64_t matmul_workspace(const CpuKernels *kernels, const Program *program,
                                const Operation *operation, Error *error) {
    if (!can_multiply(program, operation, error)) return -1;
    return (int64_t)(operation->matmul.transpose_a
                         ? kernels->weight_gradient_workspace(operation->matmul)
                         : kernels->matmul_workspace(operation->matmul));
}

static int64_t workspace(const Program *program, const Operation *operation, Error *error) {
    const CpuKernels *kernels = cpu_kernels(program->storage, error);
    if (!kernels) return -1;
    switch (operation->kind) {
    case OP_MATMUL:
        return matmul_workspace(kernels, program, operation, error);
    case OP_RMSNORM_BACKWARD:
        if (operation->inputs[4].buffer < 0) return 0; /* no weight, no sums for its gradient */
        return (int64_t)kernels->rmsnorm_workspace(operation->norm.N, operation->norm.C);
    case OP_ATTENTION_FORWARD:
    case OP_ATTENTION_BACKWARD:
        return (int64_t)kernels->attention_workspace(operation->attention);
    case OP_CROSS_ENTROPY:
        return (int64_t)kernels->cross_entropy_workspace(operation->cross_entropy);
    case OP_MUON_BEGIN:
    case OP_MUON_END:
        return (int64_t)kernels->muon_workspace(operation->muon);
    case OP_GATE_BACKWARD:
        return (int64_t)kernels->gate_workspace(operation->gate);
    case OP_SMEAR_BACKWARD:
        return (int64_t)kernels->smear_workspace(operation->smear);
    case OP_BLEND_BACKWARD:
        return (int64_t)kernels->blend_workspace(operation->blend);
    default:
        return 0;
    }
}

/* Bandwidth of memory, reading and writing: the best of a few rounds over at most `limit` bytes. */
static double measure_bandwidth(int64_t limit) {
    enum { MOST = 64 << 20, LEAST = 1 << 20, ROUNDS = 4 };
    Error error;
    int64_t count = (limit > MOST ? MOST : limit < LEAST ? LEAST : limit) / (int64_t)sizeof(float);
    float *memory = allocate((size_t)count, sizeof *memory, &error);
    double best = 1e9;
    for (int round = 0; memory && round <= ROUNDS; round++) { /* the first one touches the pages */
        double start = seconds_now();
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < count; i++) memory[i] += 1;
        double rate = 2.0 * (double)count * sizeof *memory / (seconds_now() - start);
        if (round && rate > best) best = rate;
    }
    free(memory);
    return best;
}

/* Nominal FLOP/s of one thread. */
static double nominal_peak(const CpuKernels *kernels) {
    static const struct {
        const char *isa;
        double fp32, bf16;
    } peaks[] = {{"avx512bf16", 200e9, 400e9}, {"avx512", 200e9, 200e9}, {"avx2", 100e9, 100e9}};
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++)
        if (!strcmp(kernels->isa, peaks[i].isa))
            return kernels->storage == DTYPE_F32 ? peaks[i].fp32 : peaks[i].bf16;
    return 40e9;
}

static bool describe_machine(Device *device, Dtype storage, Error *error) {
    const CpuKernels *kernels = cpu_kernels(storage, error),
                     *single = cpu_kernels(DTYPE_F32, error);
    if (!kernels || !single) return false;
    enum { THREADS = 4 }; /* nominal too: the number of threads must not change a plan */
    int threads = thread_count();
    *device = (Device){.matmul_flops = THREADS * nominal_peak(kernels),
                       .efficiency = 0.88,
                       .vector_flops = THREADS * nominal_peak(single) / 4,
                       .bandwidth = 30e9,
                       .packing = 10,
                       .launch = 5e-6,
                       .memory = memory_installed()};
    snprintf(device->name, sizeof device->name, "this CPU, %d thread%s, %s", threads,
             threads == 1 ? "" : "s", kernels->isa);
    return true;
}

static bool measure_machine(Device *device, Dtype storage, int64_t memory, Error *error) {
    const CpuKernels *kernels = cpu_kernels(storage, error),
                     *single = cpu_kernels(DTYPE_F32, error);
    if (!kernels || !single) return false;
    enum { ROUNDS = 3 }; /* the best counts: whatever else runs only ever slows it */
    device->matmul_flops = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double peak = kernels->measure_peak(0.02);
        if (peak > device->matmul_flops) device->matmul_flops = peak;
    }
    device->vector_flops = single->measure_peak(0.02) / 4;
    device->bandwidth = measure_bandwidth(memory);
    return true;
}

/* Every page is touched now, so that memory which is not there is missed before step 1. */
static uint8_t *map_arena(int64_t bytes, Error *error) {
    size_t size = bytes > 0 ? (size_t)bytes : 1;
    if (bytes > memory_available()) { /* touching more would get the process killed */
        char needed[32], there[32];
        fail(
            error,
            "%s of memory is needed and %s is free now: close other programs, or make do with less "
            "(--memory, a shorter --seq-len, a smaller model)",
            format_bytes(needed, bytes), format_bytes(there, memory_available()));
        return NULL;
    }
    void *arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) {
        fail_errno(error, "cannot have the %lld bytes that the plan needs", (long long)bytes);
        return NULL;
    }
    madvise(arena, size, MADV_HUGEPAGE);
    enum { PAGE = 4 << 10 }; /* the kernel fills the whole of a huge one at its first */
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < (int64_t)size; first += PAGE) ((uint8_t *)arena)[first] = 0;
    return arena;
}

static int64_t arena_bytes(const Program *program, MemorySpace space) {
    return space == SPACE_DEVICE ? program->arena_bytes : program->host_bytes;
}

static void close_executor(Executor *executor) {
    if (!executor) return;
    for (MemorySpace space = SPACE_DEVICE; space < SPACES; space++) {
        int64_t bytes = arena_bytes(executor->program, space);
        if (executor->arenas[space]) munmap(executor->arenas[space], bytes > 0 ? (size_t)bytes : 1);
    }
    free(executor);
}

static Executor *open_executor(const Program *program, Error *error) {
    Executor *executor = allocate(1, sizeof *executor, error);
    if (!executor) return NULL;
    executor->program = program;
    executor->kernels = cpu_kernels(program->storage, error);
    bool done = executor->kernels != NULL;
    for (MemorySpace space = SPACE_DEVICE; done && space < SPACES; space++)
        done = (executor->arenas[space] = map_arena(arena_bytes(program, space), error)) != NULL;
    if (done) return executor;
    close_executor(executor);
    return NULL;
}

static bool run_section(Executor *executor, SectionKind kind, const StepScalars *scalars,
                        Error *error) {
    (void)error; /* kernels do not fail */
    Section section = executor->program->sections[kind];
    for (int o = section.first; o < section.first + section.count; o++) {
        double start = executor->profile ? seconds_now() : 0;
        run_operation(executor, o, scalars);
        if (executor->profile) executor->profile[o] += seconds_now() - start;
    }
    return true;
}

static void beside(const Program *program, int64_t *device_bytes, int64_t *pinned_bytes) {
    (void)program;
    *device_bytes = *pinned_bytes = 0;
}

static uint8_t *address(Executor *executor, int buffer, int64_t offset) {
    return (uint8_t *)operand_address(executor, whole(buffer)) + offset;
}

static void upload(Executor *executor, int buffer, int64_t offset, const void *data,
                   int64_t bytes) {
    memcpy(address(executor, buffer, offset), data, (size_t)bytes);
}

static bool download(Executor *executor, int buffer, int64_t offset, void *data, int64_t bytes,
                     Error *error) {
    (void)error;
    memcpy(data, address(executor, buffer, offset), (size_t)bytes);
    return true;
}

static void profile(Executor *executor, double *seconds) {
    executor->profile = seconds;
}

const Backend backend_cpu = {
    .name = "cpu",
    .workspace = workspace,
    .describe = describe_machine,
    .measure = measure_machine,
    .beside = beside,
    .open = open_executor,
    .close = close_executor,
    .run = run_section,
    .upload = upload,
    .download = download,
    .profile = profile,
};
