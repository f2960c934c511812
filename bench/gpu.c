/* gpu: what a device can do, in one JSON object: the peaks of matmuls and of copies, and the rate of attention's
 * forward and backward at the shapes given. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "step/cost.h"
#include "train/backends.h"
#include "workload.h"

static int64_t rounds = 5, tokens = 32768, width = 2048;
static const char *device_name = "cuda";

static Option options[] = {
    {"device", OPTION_TEXT, &device_name, "NAME", "cpu or cuda"},
    {"rounds", OPTION_INTEGER, &rounds, "N", "runs of each measurement; the median counts", 1,
     1000},
    {"tokens", OPTION_INTEGER, &tokens, "N", "in all rows together", 1, 1 << 24},
    {"width", OPTION_INTEGER, &width, "N", "of all heads together, at most", 1, 1 << 16},
    {NULL},
};

static const Command command = {
    .name = "gpu",
    .summary = "Peaks of matmuls and copies; attention's rate at each T, head width and window.",
    .usage = "gpu [options] [T:D[:WINDOW]...]",
    .details = "Example:\n  gpu --rounds 5 2048:64 4096:128 4096:128:512",
};

static bool measure_peaks(const Backend *backend, json_t *json, Error *error) {
    Device device;
    if (!backend->describe(&device, DTYPE_BF16, error) ||
        !backend->measure(&device, DTYPE_BF16, 512 << 20, error))
        return false;
    json_object_set_new(json, "device", json_string(device.name));
    json_object_set_new(json, "memory_bytes", json_integer(device.memory));
    json_object_set_new(json, "bf16_flops_per_s", json_real(device.matmul_flops));
    json_object_set_new(json, "copy_bytes_per_s", json_real(device.bandwidth));
    return true;
}

/* ---- Attention ---- */

/* In the order of the program. */
enum { FORWARD, BACKWARD, PASSES };

typedef struct Buffers {
    int qkv, dout;
} Buffers;

static Buffers write_program(Program *program, AttentionShape shape) {
    int64_t N = shape.B * shape.T, in = 3 * shape.H * shape.D, out = shape.H * shape.D;
    program_init(program, DTYPE_BF16);
    program_begin_section(program, SECTION_MICRO_BATCH);
    int qkv = program_buffer(program, BUFFER_STATE, DTYPE_BF16, N * in, "qkv");
    int dout = program_buffer(program, BUFFER_STATE, DTYPE_BF16, N * out, "dout");
    Operand attended = whole(program_buffer(program, BUFFER_STATE, DTYPE_BF16, N * out, "out"));
    Operand lse = whole(program_buffer(program, BUFFER_STATE, DTYPE_F32, N * shape.H, "lse"));
    Operand dqkv = whole(program_buffer(program, BUFFER_STATE, DTYPE_BF16, N * in, "dqkv"));

    Operation *forward = program_add(program, OP_ATTENTION_FORWARD, 0);
    forward->outputs[0] = attended, forward->outputs[1] = lse;
    forward->inputs[0] = whole(qkv);
    forward->attention = shape;
    Operation *backward = program_add(program, OP_ATTENTION_BACKWARD, 0);
    backward->outputs[0] = dqkv;
    backward->inputs[0] = whole(dout), backward->inputs[1] = attended;
    backward->inputs[2] = lse, backward->inputs[3] = whole(qkv);
    backward->attention = shape;
    return (Buffers){qkv, dout};
}

/* The same few random numbers again and again. */
static void fill(const Backend *backend, Executor *executor, const Program *program, int buffer) {
    enum { BLOCK = 1 << 16 };
    static bf16 block[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        block[i] = bf16_from_float(random_normal(1, (uint64_t)buffer, (uint64_t)i));
    int64_t size = program->buffers[buffer].elements * (int64_t)sizeof *block;
    for (int64_t at = 0; at < size; at += BLOCK * (int64_t)sizeof *block) {
        int64_t left = size - at;
        backend->upload(executor, buffer, at, block,
                        left < (int64_t)sizeof block ? left : (int64_t)sizeof block);
    }
}

/* Median seconds of each pass, after one round to warm up. */
static bool time_passes(const Backend *backend, Executor *executor, double seconds[PASSES],
                        Error *error) {
    StepScalars scalars = {.step = 1};
    double *samples = allocate((size_t)(PASSES * rounds), sizeof *samples, error);
    bool done = samples != NULL;
    for (int64_t round = 0; done && round <= rounds; round++) {
        double took[PASSES] = {0};
        backend->profile(executor, took);
        done = backend->run(executor, SECTION_MICRO_BATCH, &scalars, error);
        for (int pass = 0; round && pass < PASSES; pass++)
            samples[pass * rounds + round - 1] = took[pass];
    }
    for (int pass = 0; done && pass < PASSES; pass++)
        seconds[pass] = median(samples + pass * rounds, (size_t)rounds);
    free(samples);
    return done;
}

static json_t *shape_json(const Program *program, const double seconds[PASSES]) {
    static const char *const keys[PASSES] = {"forward_flops_per_s", "backward_flops_per_s"};
    const AttentionShape *shape = &program->operations[0].attention;
    json_t *json = json_object();
    json_object_set_new(json, "rows", json_integer(shape->B));
    json_object_set_new(json, "T", json_integer(shape->T));
    json_object_set_new(json, "heads", json_integer(shape->H));
    json_object_set_new(json, "D", json_integer(shape->D));
    json_object_set_new(json, "window", json_integer(shape->window));
    for (int pass = 0; pass < PASSES; pass++)
        json_object_set_new(
            json, keys[pass],
            json_real(operation_cost(program, &program->operations[pass]).flops / seconds[pass]));
    return json;
}

/* NULL with an error when it cannot be done. */
static json_t *measure_attention(const Backend *backend, AttentionShape shape, Error *error) {
    Program program;
    Buffers buffers = write_program(&program, shape);
    Executor *executor = NULL;
    double seconds[PASSES];
    bool done = program_finish(&program, error) && layout_program(&program, backend, error) &&
                (executor = backend->open(&program, error));
    if (done) {
        fill(backend, executor, &program, buffers.qkv);
        fill(backend, executor, &program, buffers.dout);
        done = time_passes(backend, executor, seconds, error);
    }
    json_t *json = done ? shape_json(&program, seconds) : NULL;
    if (executor) backend->close(executor);
    program_free(&program);
    return json;
}

/* "4096:128:512": T, D and, unless all that came before is seen, the window. */
static bool read_shape(const char *text, AttentionShape *shape, Error *error) {
    long long T, D, window = -1;
    char behind;
    int found = sscanf(text, "%lld:%lld:%lld%c", &T, &D, &window, &behind);
    if (found < 2 || found > 3 || T < 1 || D < 2 || D % 2 || D > width || T > tokens)
        return fail(
            error,
            "'%s' is not T:D or T:D:WINDOW such as 4096:128:512, with T up to %lld (--tokens) "
            "and an even D up to %lld (--width)",
            text, (long long)tokens, (long long)width);
    *shape = (AttentionShape){.B = tokens / T,
                              .T = T,
                              .H = width / D,
                              .KV = width / D,
                              .D = D,
                              .window = window,
                              .scale = 1 / sqrtf((float)D)};
    return true;
}

static bool run(json_t *json, char **shapes, int count, Error *error) {
    const Backend *backend = backend_find(device_name, error);
    if (!backend || !measure_peaks(backend, json, error)) return false;
    json_t *list = json_array();
    json_object_set_new(json, "attention", list);
    for (int i = 0; i < count; i++) {
        AttentionShape shape = {0};
        json_t *row =
            read_shape(shapes[i], &shape, error) ? measure_attention(backend, shape, error) : NULL;
        if (!row) return false;
        json_array_append_new(list, row);
    }
    return true;
}

int main(int argc, char **argv) {
    Error error;
    int words;
    ParseResult parsed = options_parse(&command, options, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    json_t *json = json_object();
    if (run(json, argv, words, &error)) {
        workload_print(json);
        return EXIT_SUCCESS;
    }
    json_decref(json);
    return command_failed(&error);
}
