/* machine: what this machine can do, in one JSON object: peaks of dot products, memory bandwidth, and the
 * rate of oneDNN's matmul at every shape of a model's training step, operands plain and packed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/kernels.h"
#include "onednn.h"
#include "workload.h"

static int64_t rounds = 3;
static bool matmuls = true;

static const Option own[] = {
    {"rounds", OPTION_INTEGER, &rounds, "N", "runs of each measurement; the best counts", 1, 1000},
    {"matmuls", OPTION_FLAG, &matmuls, NULL, "oneDNN's matmuls too"},
    {NULL},
};

static const Command command = {
    .name = "machine",
    .summary = "The peaks of this machine, and oneDNN's rate at a model's matmuls.",
    .usage = "machine --model NAME [--rounds N] [--no-matmuls] [options of 'hearth train']",
    .details = "Example:\n  machine --model llama-110m --seq-len 1024 --batch-tokens 8192",
};

static void keep_best(double *best, double value) {
    if (value > *best) *best = value;
}

static double peak(Dtype storage) {
    Error error;
    const CpuKernels *kernels = cpu_kernels(storage, &error);
    return kernels ? kernels->measure_peak(0.2) : 0;
}

/* ---- Memory ---- */

enum { FLOATS = 64 << 20 }; /* 256 MiB each: beyond any cache */

static volatile float sink; /* so that the sum is needed */

static double read_rate(const float *from) {
    double started = seconds_now();
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static)
    for (int64_t i = 0; i < FLOATS; i++) sum += from[i];
    sink = sum;
    return FLOATS * sizeof(float) / (seconds_now() - started);
}

/* Bytes read and bytes written. */
static double copy_rate(float *to, const float *from) {
    enum { BLOCK = 1 << 18 };
    double started = seconds_now();
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < FLOATS; i += BLOCK) memcpy(to + i, from + i, BLOCK * sizeof(float));
    return 2.0 * FLOATS * sizeof(float) / (seconds_now() - started);
}

static bool measure_memory(json_t *json, Error *error) {
    float *from = allocate(FLOATS, sizeof *from, error), *to = allocate(FLOATS, sizeof *to, error);
    double best_read = 0, best_copy = 0;
    if (from && to) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < FLOATS; i++) from[i] = to[i] = 1;
        for (int64_t round = 0; round < rounds; round++) {
            keep_best(&best_read, read_rate(from));
            keep_best(&best_copy, copy_rate(to, from));
        }
        json_object_set_new(json, "read_bytes_per_s", json_real(best_read));
        json_object_set_new(json, "copy_bytes_per_s", json_real(best_copy));
    }
    bool done = from && to;
    free(from);
    free(to);
    return done;
}

/* ---- Matmuls ---- */

/* FLOP/s of the best run, 0 where there is no such product. */
static double matmul_rate(MatmulShape shape, ProductTypes types, bool packed, Error *error) {
    OnednnMatmul *matmul = onednn_create(shape, types, packed, error);
    double flops = 2 * (double)shape.M * (double)shape.N * (double)shape.K, best = 0;
    for (int64_t round = 0; matmul && round <= rounds; round++) { /* the first warms up */
        double seconds = onednn_run(matmul);
        if (round && seconds > 0) keep_best(&best, flops / seconds);
    }
    onednn_free(matmul);
    return best;
}

static json_t *shape_json(const Program *program, const Operation *operation, double count,
                          Error *error) {
    const MatmulShape *shape = &operation->matmul;
    ProductTypes types = {program->buffers[operation->outputs[0].buffer].dtype,
                          program->buffers[operation->inputs[0].buffer].dtype,
                          program->buffers[operation->inputs[1].buffer].dtype};
    double plain = matmul_rate(*shape, types, false, error);
    double packed = matmul_rate(*shape, types, true, error);
    if (plain == 0 && packed == 0) return NULL;
    json_t *json = json_object();
    json_object_set_new(json, "operation", json_string(workload_label(operation)));
    json_object_set_new(json, "M", json_integer(shape->M));
    json_object_set_new(json, "N", json_integer(shape->N));
    json_object_set_new(json, "K", json_integer(shape->K));
    json_object_set_new(json, "count", json_real(count));
    json_object_set_new(json, "plain_flops_per_s", json_real(plain));
    json_object_set_new(json, "packed_flops_per_s", json_real(packed));
    return json;
}

/* The distinct matmuls of the step, each where it stands first. */
static void measure_matmuls(json_t *json, const Workload *workload) {
    Error error;
    const Program *program = &workload->plan.program;
    Section section = program->sections[SECTION_MICRO_BATCH];
    const Operation *first = program->operations + section.first, *end = first + section.count;
    json_t *list = json_array();
    for (const Operation *o = first; o < end; o++) {
        if (o->kind != OP_MATMUL) continue;
        const Operation *same = first;
        while (!workload_alike(same, o)) same++;
        if (same != o) continue;
        double count = 0;
        for (const Operation *other = o; other < end; other++) count += workload_alike(other, o);
        json_t *shape =
            shape_json(program, o, count * (double)workload_micro_batches(workload), &error);
        if (!shape) {
            json_object_set_new(json, "onednn_absent", json_string(error.message));
            break;
        }
        json_array_append_new(list, shape);
    }
    json_object_set_new(json, "matmuls", list);
}

static bool run(Workload *workload, Error *error) {
    json_t *json = json_object();
    double narrow = 0, wide = 0;
    for (int64_t round = 0; round < rounds; round++) {
        keep_best(&narrow, peak(DTYPE_BF16));
        keep_best(&wide, peak(DTYPE_F32));
    }
    json_object_set_new(json, "bf16_flops_per_s", json_real(narrow));
    json_object_set_new(json, "fp32_flops_per_s", json_real(wide));
    bool done = measure_memory(json, error);
    if (done && matmuls) measure_matmuls(json, workload);
    if (done)
        workload_print(json);
    else
        json_decref(json);
    return done;
}

int main(int argc, char **argv) {
    return workload_main(&command, own, run, argc, argv);
}
