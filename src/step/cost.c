#include "step/cost.h"

#include "base/integer.h"

double attention_pairs(int64_t T, int64_t window) {
    if (window < 0 || window >= T) window = T - 1;
    double inside = (double)window + 1; /* keys seen once the window is full */
    return inside * (inside + 1) / 2 + ((double)T - inside) * inside;
}

/* Each operand counts once; an operand that starts inside a buffer counts for the elements given. */
static double operand_bytes(const Program *program, Operand operand, double elements) {
    if (operand.buffer < 0) return 0;
    const Buffer *buffer = &program->buffers[operand.buffer];
    double rest = (double)(buffer->elements - operand.offset);
    return (elements < rest ? elements : rest) * (double)dtype_size(buffer->dtype);
}

static Cost matmul_cost(const Program *program, const Operation *operation) {
    const MatmulShape *shape = &operation->matmul;
    double M = (double)shape->M, N = (double)shape->N, K = (double)shape->K;
    Cost cost = {.flops = 2 * M * N * K, .matrix = true};
    cost.bytes = operand_bytes(program, operation->inputs[0], M * K) +
                 operand_bytes(program, operation->inputs[1], K * N) +
                 operand_bytes(program, operation->inputs[2], M * N) +
                 operand_bytes(program, operation->outputs[0], M * N);
    return cost;
}

static Cost attention_cost(const Program *program, const Operation *operation) {
    const AttentionShape *shape = &operation->attention;
    double B = (double)shape->B, H = (double)shape->H, D = (double)shape->D;
    double width = (H + 2 * (double)shape->KV) * D * (double)dtype_size(program->storage);
    double tokens = B * (double)shape->T;
    double product = 2 * B * H * D * attention_pairs(shape->T, shape->window);
    if (operation->kind == OP_ATTENTION_FORWARD)
        return (Cost){.flops = 2 * product, .bytes = 2 * tokens * width, .matrix = true};
    if (operation->kind == OP_ATTENTION_BACKWARD) /* the scores are computed again */
        return (Cost){.flops = 5 * product,
                      .useful = 4 * product,
                      .bytes = 4 * tokens * width,
                      .matrix = true};
    double context = (double)program->context; /* decode: the whole cache at worst */
    return (Cost){.flops = 4 * tokens * H * D * context, .bytes = context * width};
}

/* FLOPs per element of the operations that are bound by memory, roughly. */
static double elementwise_flops(OperationKind kind) {
    switch (kind) {
    case OP_RMSNORM_FORWARD:
        return 4;
    case OP_RMSNORM_BACKWARD:
        return 10;
    case OP_SWIGLU_FORWARD:
        return 12;
    case OP_SWIGLU_BACKWARD:
        return 18;
    case OP_RELU2_FORWARD:
        return 2;
    case OP_RELU2_BACKWARD:
        return 3;
    case OP_QKV_FORWARD:
    case OP_SMEAR_FORWARD:
    case OP_BLEND_FORWARD:
        return 5;
    case OP_QKV_BACKWARD:
    case OP_SMEAR_BACKWARD:
    case OP_BLEND_BACKWARD:
        return 10;
    case OP_CROSS_ENTROPY:
        return 25;
    case OP_SOFT_CAP:
    case OP_ADAMW:
    case OP_MUON_END:
        return 15;
    case OP_MUON_BEGIN:
    case OP_MUON_POLYNOMIAL:
        return 8;
    case OP_GRADIENT_NORM:
        return 2;
    default:
        return 1;
    }
}

static double operation_elements(const Operation *operation) {
    switch (operation->kind) {
    case OP_EMBEDDING_FORWARD:
    case OP_EMBEDDING_BACKWARD:
        return (double)operation->embedding.N * (double)operation->embedding.C;
    case OP_RMSNORM_FORWARD:
    case OP_RMSNORM_BACKWARD:
        return (double)operation->norm.N * (double)operation->norm.C;
    case OP_ROPE_FORWARD:
    case OP_ROPE_BACKWARD:
        return (double)(operation->rope.N * operation->rope.heads) * (double)operation->rope.D;
    case OP_QKV_FORWARD:
    case OP_QKV_BACKWARD:
        return (double)(operation->qkv.N * operation->qkv.D) *
               (double)(operation->qkv.H + 2 * operation->qkv.KV);
    case OP_GATE_FORWARD:
    case OP_GATE_BACKWARD: /* the channels are all that is read of a row */
        return (double)(operation->gate.N * operation->gate.gates * operation->gate.channels);
    case OP_SMEAR_FORWARD:
    case OP_SMEAR_BACKWARD:
        return (double)operation->smear.N * (double)operation->smear.C;
    case OP_BLEND_FORWARD:
    case OP_BLEND_BACKWARD:
        return (double)operation->blend.n;
    case OP_SOFT_CAP:
        return (double)operation->soft_cap.n;
    case OP_SWIGLU_FORWARD:
    case OP_SWIGLU_BACKWARD:
        return 2 * (double)operation->swiglu.N * (double)operation->swiglu.F;
    case OP_CROSS_ENTROPY:
        return (double)operation->cross_entropy.N * (double)operation->cross_entropy.stride;
    case OP_ADAMW:
        return (double)operation->adamw.n;
    case OP_MUON_BEGIN:
    case OP_MUON_END:
        return (double)operation->muon.rows * (double)operation->muon.columns;
    case OP_MUON_POLYNOMIAL:
        return (double)operation->polynomial.m * (double)operation->polynomial.m;
    case OP_COPY_START:
        return (double)operation->copy.n;
    case OP_COPY_WAIT:
        return 0;
    default:
        return (double)operation->elements.n;
    }
}

static bool is_of_muon(const Operation *operation) {
    switch (operation->kind) {
    case OP_MUON_BEGIN:
    case OP_MUON_POLYNOMIAL:
    case OP_MUON_END:
        return true;
    default:
        return operation->kind == OP_MATMUL && operation->matmul.role == MATMUL_UPDATE;
    }
}

/* Muon's variance has but one for each row or column. */
static double output_elements(const Operation *operation, int output) {
    if (operation->kind == OP_MUON_END && output == 2)
        return (double)larger(operation->muon.rows, operation->muon.columns);
    return operation_elements(operation);
}

Cost operation_cost(const Program *program, const Operation *operation) {
    Cost cost = {0};
    switch (operation->kind) {
    case OP_MATMUL:
        cost = matmul_cost(program, operation);
        break;
    case OP_ATTENTION_FORWARD:
    case OP_ATTENTION_BACKWARD:
    case OP_ATTENTION_DECODE:
        cost = attention_cost(program, operation);
        break;
    default: {
        double elements = operation_elements(operation);
        cost.flops = elements * elementwise_flops(operation->kind);
        for (int i = 0; i < OPERATION_INPUTS; i++)
            cost.bytes += operand_bytes(program, operation->inputs[i], elements);
        for (int i = 0; i < OPERATION_OUTPUTS; i++)
            cost.bytes +=
                operand_bytes(program, operation->outputs[i], output_elements(operation, i));
    }
    }
    if (operation->recomputed || is_of_muon(operation))
        cost.useful = 0;
    else if (cost.useful == 0 && cost.matrix)
        cost.useful = cost.flops;
    return cost;
}

/* By how much preparing the weight lengthens a matmul of few tokens. */
static double packing_factor(const Operation *operation, const Device *device) {
    if (operation->kind != OP_MATMUL) return 1;
    const MatmulShape *shape = &operation->matmul;
    return 1 + device->packing / (double)(shape->transpose_a ? shape->K : shape->M);
}

double operation_seconds(const Program *program, const Operation *operation, const Device *device) {
    Cost cost = operation_cost(program, operation);
    double rate = cost.matrix ? device->matmul_flops * device->efficiency : device->vector_flops;
    double arithmetic = cost.flops / rate * packing_factor(operation, device),
           memory = cost.bytes / device->bandwidth;
    return device->launch + (arithmetic > memory ? arithmetic : memory); /* one hides the other */
}

Cost section_cost(const Program *program, SectionKind section) {
    Cost sum = {0};
    const Section *range = &program->sections[section];
    for (int o = range->first; o < range->first + range->count; o++) {
        Cost cost = operation_cost(program, &program->operations[o]);
        sum.flops += cost.flops, sum.useful += cost.useful, sum.bytes += cost.bytes;
    }
    return sum;
}

/* Two clocks: when the step's own work gets done, and when the copies do that were queued so far. */
typedef struct Clocks {
    double step, copies;
    double done[COPIES_AT_ONCE]; /* when the last copy of that id is */
} Clocks;

static void queue_copy(Clocks *clocks, const Program *program, const Operation *operation,
                       const Device *device) {
    const Buffer *from = &program->buffers[operation->inputs[0].buffer];
    double bytes = (double)(operation->copy.n * dtype_size(from->dtype));
    clocks->step += device->launch;
    if (clocks->copies < clocks->step) clocks->copies = clocks->step;
    clocks->copies += bytes / device->host_bandwidth;
    clocks->done[operation->copy.id] = clocks->copies;
}

static void advance(Clocks *clocks, const Program *program, const Operation *operation,
                    const Device *device) {
    if (operation->kind == OP_COPY_START && device->host_bandwidth > 0) {
        queue_copy(clocks, program, operation, device);
    } else if (operation->kind == OP_COPY_WAIT) {
        double done = clocks->done[operation->copy.id];
        if (clocks->step < done) clocks->step = done;
    } else { /* in one memory a copy is work like any other */
        clocks->step += operation_seconds(program, operation, device);
    }
}

double section_seconds(const Program *program, SectionKind section, const Device *device,
                       double *by_kind) {
    Clocks clocks = {0};
    const Section *range = &program->sections[section];
    for (int o = range->first; o < range->first + range->count; o++) {
        const Operation *operation = &program->operations[o];
        double before = clocks.step;
        advance(&clocks, program, operation, device);
        if (by_kind) by_kind[operation->kind] += clocks.step - before;
    }
    return clocks.step;
}

double muon_seconds(const Program *program, const Device *device) {
    double seconds = 0;
    for (int o = 0; o < program->operation_count; o++)
        if (is_of_muon(&program->operations[o]))
            seconds += operation_seconds(program, &program->operations[o], device);
    return seconds;
}
