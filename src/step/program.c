#include "step/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const char *operation_name(OperationKind kind) {
    static const char *const names[OPERATION_KINDS] = {
        [OP_EMBEDDING_FORWARD] = "embedding forward",
        [OP_EMBEDDING_BACKWARD] = "embedding backward",
        [OP_RMSNORM_FORWARD] = "rmsnorm forward",
        [OP_RMSNORM_BACKWARD] = "rmsnorm backward",
        [OP_MATMUL] = "matmul",
        [OP_ROPE_FORWARD] = "rope forward",
        [OP_ROPE_BACKWARD] = "rope backward",
        [OP_QKV_FORWARD] = "qkv forward",
        [OP_QKV_BACKWARD] = "qkv backward",
        [OP_ATTENTION_FORWARD] = "attention forward",
        [OP_ATTENTION_BACKWARD] = "attention backward",
        [OP_ATTENTION_DECODE] = "attention decode",
        [OP_SWIGLU_FORWARD] = "swiglu forward",
        [OP_SWIGLU_BACKWARD] = "swiglu backward",
        [OP_RELU2_FORWARD] = "relu2 forward",
        [OP_RELU2_BACKWARD] = "relu2 backward",
        [OP_GATE_FORWARD] = "gate forward",
        [OP_GATE_BACKWARD] = "gate backward",
        [OP_SMEAR_FORWARD] = "smear forward",
        [OP_SMEAR_BACKWARD] = "smear backward",
        [OP_BLEND_FORWARD] = "blend forward",
        [OP_BLEND_BACKWARD] = "blend backward",
        [OP_CROSS_ENTROPY] = "cross-entropy",
        [OP_SOFT_CAP] = "soft cap",
        [OP_LOSS_SUM] = "loss sum",
        [OP_GRADIENT_NORM] = "gradient norm",
        [OP_ADAMW] = "adamw",
        [OP_MUON_BEGIN] = "muon begin",
        [OP_MUON_POLYNOMIAL] = "muon polynomial",
        [OP_MUON_END] = "muon end",
        [OP_COPY_START] = "copy",
        [OP_COPY_WAIT] = "wait for a copy",
    };
    return names[kind];
}

const char *buffer_kind_name(BufferKind kind) {
    static const char *const names[BUFFER_KINDS] = {
        [BUFFER_MASTER] = "master weights (fp32)",
        [BUFFER_WORKING] = "working weights",
        [BUFFER_GRADIENT] = "gradients (fp32)",
        [BUFFER_STATE] = "optimizer state",
        [BUFFER_INPUT] = "inputs and tables",
        [BUFFER_OUTPUT] = "losses",
        [BUFFER_CACHE] = "key/value cache",
        [BUFFER_ACTIVATION] = "activations",
        [BUFFER_ACTIVATION_GRADIENT] = "activation gradients",
        [BUFFER_LOGITS] = "logits (one chunk)",
        [BUFFER_WORKSPACE] = "workspace",
    };
    return names[kind];
}

void program_init(Program *program, Dtype storage) {
    *program = (Program){.storage = storage};
    int *const absent[] = {
        &program->master,      &program->working,         &program->gradient,
        &program->precise,     &program->moment1,         &program->moment2,
        &program->absmax1,     &program->absmax2,         &program->momentum,
        &program->variance,    &program->tokens,          &program->targets,
        &program->losses,      &program->loss_sum,        &program->document_start,
        &program->cos_sin,     &program->gradient_norm,   &program->new_tokens,
        &program->logits,      &program->previous_tokens, &program->score_input,
        &program->score_start, &program->score_targets,   &program->score_losses,
        &program->score_best};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) *absent[i] = -1;
}

void program_free(Program *program) {
    free(program->buffers);
    free(program->operations);
    free(program->weights);
    free(program->parameters);
    *program = (Program){0};
}

bool program_finish(const Program *program, Error *error) {
    return !program->failed || fail(error, "out of memory while the step program was written");
}

void program_begin_section(Program *program, SectionKind kind) {
    program->sections[kind] = (Section){.first = program->operation_count};
    program->open_section = kind;
}

/* Index of a new last element, or -1 once memory has run out. */
static int next_index(Program *program, void *array_address, size_t *capacity, int *count,
                      size_t size) {
    Error error;
    if (program->failed || !reserve(array_address, capacity, (size_t)*count + 1, size, &error)) {
        program->failed = true;
        return -1;
    }
    return (*count)++;
}

int program_buffer(Program *program, BufferKind kind, Dtype dtype, int64_t elements,
                   const char *format, ...) {
    int index = next_index(program, &program->buffers, &program->buffer_capacity,
                           &program->buffer_count, sizeof *program->buffers);
    if (index < 0) return -1;
    Buffer *buffer = &program->buffers[index];
    *buffer = (Buffer){.kind = kind, .dtype = dtype, .elements = elements};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer->name, sizeof buffer->name, format, arguments);
    va_end(arguments);
    return index;
}

Operation *program_add(Program *program, OperationKind kind, int layer) {
    int index = next_index(program, &program->operations, &program->operation_capacity,
                           &program->operation_count, sizeof *program->operations);
    Operation *operation = index < 0 ? &program->spare : &program->operations[index];
    *operation = (Operation){.kind = kind, .layer = layer, .workspace = operand_none};
    for (int i = 0; i < OPERATION_OUTPUTS; i++) operation->outputs[i] = operand_none;
    for (int i = 0; i < OPERATION_INPUTS; i++) operation->inputs[i] = operand_none;
    if (index >= 0) program->sections[program->open_section].count++;
    return operation;
}

int program_weight(Program *program, int layer, int64_t rows, int64_t columns, WeightRole role,
                   const char *format, ...) {
    int64_t offset = program_weight_elements(program);
    int index = next_index(program, &program->weights, &program->weight_capacity,
                           &program->weight_count, sizeof *program->weights);
    if (index < 0) return -1;
    Weight *weight = &program->weights[index];
    *weight =
        (Weight){.layer = layer, .rows = rows, .columns = columns, .offset = offset, .role = role};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(weight->name, sizeof weight->name, format, arguments);
    va_end(arguments);
    return index;
}

void program_parameter(Program *program, int64_t rows, Initialisation initialisation, float init_a,
                       float init_b, const char *format, ...) {
    int index = next_index(program, &program->parameters, &program->parameter_capacity,
                           &program->parameter_count, sizeof *program->parameters);
    if (index < 0) return;
    Parameter *parameter = &program->parameters[index];
    int weight = program->weight_count - 1;
    int64_t first_row = 0;
    if (index && parameter[-1].weight == weight)
        first_row = parameter[-1].first_row + parameter[-1].rows;
    *parameter = (Parameter){.weight = weight,
                             .first_row = first_row,
                             .rows = rows,
                             .initialisation = initialisation,
                             .init_a = init_a,
                             .init_b = init_b};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parameter->name, sizeof parameter->name, format, arguments);
    va_end(arguments);
}

int64_t program_weight_elements(const Program *program) {
    if (!program->weight_count) return 0;
    const Weight *last = &program->weights[program->weight_count - 1];
    int64_t end = last->offset + last->rows * last->columns;
    return (end + STATE_BLOCK - 1) / STATE_BLOCK * STATE_BLOCK;
}

/* Where the precise weights begin: at the end when there are none. */
static int64_t first_precise(const Program *program) {
    for (int i = 0; i < program->weight_count; i++)
        if (role_is_precise(program->weights[i].role)) return program->weights[i].offset;
    return program_weight_elements(program);
}

void program_make_weight_buffers(Program *program, bool training) {
    int64_t elements = program_weight_elements(program), precise = first_precise(program);
    bool separate = program->storage != DTYPE_F32;
    if (training)
        program->master = program_buffer(program, BUFFER_MASTER, DTYPE_F32, elements, "masters");
    program->working = program->master;
    if (separate || !training)
        program->working =
            program_buffer(program, BUFFER_WORKING, program->storage, elements, "working weights");
    if (training)
        program->gradient =
            program_buffer(program, BUFFER_GRADIENT, DTYPE_F32, elements, "gradients");
    program->precise = training ? program->master : program->working;
    if (training || !separate || precise == elements) return;
    program->precise_offset = precise;
    program->precise =
        program_buffer(program, BUFFER_WORKING, DTYPE_F32, elements - precise, "precise weights");
}

Operand program_working(const Program *program, int weight) {
    return (Operand){program->working, weight < 0 ? 0 : program->weights[weight].offset};
}

Operand program_gradient(const Program *program, int weight) {
    return (Operand){program->gradient, weight < 0 ? 0 : program->weights[weight].offset};
}

Operand program_precise(const Program *program, int weight) {
    if (weight < 0) return operand_none;
    return (Operand){program->precise, program->weights[weight].offset - program->precise_offset};
}
