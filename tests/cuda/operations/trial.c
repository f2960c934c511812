#include "trial.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "cpu/backend.h"
#include "cuda/backend.h"
#include "cuda/executor.h"

void trial_open(Trial *trial, Dtype storage) {
    *trial =
        (Trial){.scalars = {.learning_rate = 1e-3f, .gradient_scale = 1, .step = 1, .seed = 7}};
    program_init(&trial->program, storage);
    program_begin_section(&trial->program, SECTION_MICRO_BATCH);
}

void trial_close(Trial *trial) {
    for (int i = 0; i < TRIAL_BUFFERS; i++) {
        free(trial->start[i]);
        free(trial->cpu[i]);
        free(trial->cuda[i]);
    }
    program_free(&trial->program);
}

/* A buffer that nothing else shares memory with, followed by a gap; not an input of a micro-batch, whose
 * copies would be cut into the size of such. */
static int add_buffer(Trial *trial, Dtype dtype, int64_t elements) {
    enum { GAP = 256 };
    int64_t gap = GAP / dtype_size(dtype);
    int buffer = program_buffer(&trial->program, BUFFER_STATE, dtype, elements + gap, "buffer");
    assert_in_range(buffer, 0, TRIAL_BUFFERS - 1);
    trial->bytes[buffer] = elements * dtype_size(dtype);
    size_t size = (size_t)trial->bytes[buffer];
    trial->start[buffer] = memset(malloc(size), 0xff, size);
    trial->cpu[buffer] = malloc(size);
    trial->cuda[buffer] = malloc(size);
    return buffer;
}

static void set(void *data, Dtype dtype, int64_t i, double value) {
    if (dtype == DTYPE_BF16)
        ((bf16 *)data)[i] = bf16_from_float((float)value);
    else if (dtype == DTYPE_F64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static double get(const void *data, Dtype dtype, int64_t i) {
    if (dtype == DTYPE_BF16) return (double)bf16_to_float(((const bf16 *)data)[i]);
    if (dtype == DTYPE_F64) return ((const double *)data)[i];
    return (double)((const float *)data)[i];
}

int trial_random(Trial *trial, Dtype dtype, int64_t elements, double deviation) {
    int buffer = add_buffer(trial, dtype, elements);
    for (int64_t i = 0; i < elements; i++)
        set(trial->start[buffer], dtype, i,
            deviation * (double)random_normal(7, 0, trial->draws++));
    return buffer;
}

int trial_integers(Trial *trial, int64_t elements, int32_t bound) {
    int buffer = add_buffer(trial, DTYPE_I32, elements);
    for (int64_t i = 0; i < elements; i++)
        ((int32_t *)trial->start[buffer])[i] =
            (int32_t)random_below(7, 1, trial->draws++, (uint64_t)bound);
    return buffer;
}

int trial_given(Trial *trial, Dtype dtype, int64_t elements, const void *data) {
    int buffer = add_buffer(trial, dtype, elements);
    memcpy(trial->start[buffer], data, (size_t)trial->bytes[buffer]);
    return buffer;
}

int trial_documents(Trial *trial, int64_t B, int64_t T, int64_t length) {
    if (length == 0) return -1;
    const int buffer = add_buffer(trial, DTYPE_I32, B * T);
    int32_t *starts = trial->start[buffer];
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++) {
            const int64_t start = (t + b) / length * length - b;
            starts[b * T + t] = (int32_t)(start < 0 ? 0 : start);
        }
    return buffer;
}

int trial_output(Trial *trial, Dtype dtype, int64_t elements) {
    return add_buffer(trial, dtype, elements);
}

void *trial_data(Trial *trial, int buffer) {
    return trial->start[buffer];
}

Operation *trial_operation(Trial *trial, OperationKind kind) {
    return program_add(&trial->program, kind, 0);
}

/* The program as a backend is given it: with that backend's own workspaces. */
static Program copy_program(const Program *program) {
    Program copy = *program;
    copy.buffers = NULL, copy.buffer_count = 0, copy.buffer_capacity = 0;
    copy.operations = NULL, copy.operation_count = 0, copy.operation_capacity = 0;
    for (int b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        program_buffer(&copy, buffer->kind, buffer->dtype, buffer->elements, "%s", buffer->name);
    }
    program_begin_section(&copy, SECTION_MICRO_BATCH);
    for (int o = 0; o < program->operation_count; o++)
        *program_add(&copy, program->operations[o].kind, 0) = program->operations[o];
    return copy;
}

/* Guards or frees the gap behind every buffer, where a GPU for tests can do that. */
static void guard_gaps(const Trial *trial, const Executor *executor, int guarded) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*guard)(CUdeviceptr, size_t, int) = NULL;
    if (library) *(void **)&guard = dlsym(library, "testGpuGuard");
    for (int b = 0; guard && b < trial->program.buffer_count; b++) {
        const Buffer *buffer = &executor->program->buffers[b];
        CUdeviceptr start = executor->arena + (CUdeviceptr)(buffer->offset + trial->bytes[b]);
        guard(start, (size_t)(buffer_bytes(buffer) - trial->bytes[b]), guarded);
    }
    if (library) dlclose(library);
}

/* What the program did not ask for must not have been written: the gaps hold the arena's zeros. */
static void check_gaps(const Trial *trial, const Backend *backend, Executor *executor) {
    for (int b = 0; b < trial->program.buffer_count; b++) {
        uint8_t gap[256] = {1};
        Error error;
        assert_done(backend->download(executor, b, trial->bytes[b], gap, sizeof gap, &error),
                    error);
        for (size_t i = 0; i < sizeof gap; i++)
            if (gap[i]) fail_msg("buffer %d was written %zu bytes behind its end", b, i);
    }
}

static void run_on(Trial *trial, const Backend *backend, void **results) {
    Error error;
    Program program = copy_program(&trial->program);
    assert_done(layout_program(&program, backend, &error), error);
    Executor *executor = backend->open(&program, &error);
    assert_done(executor, error);
    check_gaps(trial, backend, executor); /* also waits for the arena to be cleared */
    if (backend == &backend_cuda) guard_gaps(trial, executor, 1);
    for (int b = 0; b < trial->program.buffer_count; b++)
        backend->upload(executor, b, 0, trial->start[b], trial->bytes[b]);
    assert_done(backend->run(executor, SECTION_MICRO_BATCH, &trial->scalars, &error), error);
    for (int b = 0; b < trial->program.buffer_count; b++)
        assert_done(backend->download(executor, b, 0, results[b], trial->bytes[b], &error), error);
    if (backend == &backend_cuda) guard_gaps(trial, executor, 0);
    check_gaps(trial, backend, executor);
    backend->close(executor);
    program.weights = NULL, program.parameters = NULL; /* the trial's own */
    program_free(&program);
}

void trial_run(Trial *trial) {
    run_on(trial, &backend_cpu, trial->cpu);
    run_on(trial, &backend_cuda, trial->cuda);
}

void trial_close_to(Trial *trial, int buffer, double relative, double absolute) {
    Dtype dtype = trial->program.buffers[buffer].dtype;
    for (int64_t i = 0; i < trial->bytes[buffer] / dtype_size(dtype); i++) {
        double want = get(trial->cpu[buffer], dtype, i), got = get(trial->cuda[buffer], dtype, i);
        if (!(fabs(got - want) <= relative * fabs(want) + absolute) && got != want)
            fail_msg("buffer %d[%lld] is %.9g on the GPU and %.9g on the CPU", buffer, (long long)i,
                     got, want);
    }
}

void trial_same(Trial *trial, int buffer) {
    const uint8_t *want = trial->cpu[buffer], *got = trial->cuda[buffer];
    for (int64_t i = 0; i < trial->bytes[buffer]; i++)
        if (want[i] != got[i])
            fail_msg("buffer %d: byte %lld is %d on the GPU and %d on the CPU", buffer,
                     (long long)i, got[i], want[i]);
}
