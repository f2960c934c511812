#include "step/recompute.h"

#include <stdlib.h>

#include "base/memory.h"

const char *recompute_name(RecomputeLevel level) {
    static const char *const names[RECOMPUTE_LEVELS] = {"none", "cheap", "mlp", "layer"};
    return names[level];
}

typedef struct Rewrite {
    Program *program;
    Operation *source; /* the operations before the rewrite */
    int *producer;     /* [buffers] forward operation that writes a dropped buffer, or -1 */
    int *replacement;  /* [buffers] the buffer that holds its recomputed value, or -1 */
} Rewrite;

static void put_operation(Program *program, const Operation *operation) {
    Operation *copy = program_add(program, operation->kind, operation->layer);
    *copy = *operation;
}

/* A fresh buffer like `index`, for a value made a second time. */
static int duplicate_buffer(Program *program, int index) {
    Buffer original = program->buffers[index];
    int copy = program_buffer(program, original.kind, original.dtype, original.elements, "%.29s'",
                              original.name);
    return copy < 0 ? index : copy;
}

/* Emits the clones that make dropped buffer `index` again, unless that has been done. */
static void make_again(Rewrite *rewrite, int index) {
    if (rewrite->replacement[index] >= 0) return;
    Operation clone = rewrite->source[rewrite->producer[index]];
    clone.recomputed = true;
    for (int i = 0; i < OPERATION_INPUTS; i++) {
        int input = clone.inputs[i].buffer;
        if (input < 0 || rewrite->producer[input] < 0) continue;
        make_again(rewrite, input);
        clone.inputs[i].buffer = rewrite->replacement[input];
    }
    for (int i = 0; i < OPERATION_OUTPUTS; i++) {
        int output = clone.outputs[i].buffer;
        if (output < 0) continue;
        int copy = duplicate_buffer(rewrite->program, output);
        if (rewrite->producer[output] >= 0) rewrite->replacement[output] = copy;
        clone.outputs[i].buffer = copy;
    }
    put_operation(rewrite->program, &clone);
}

static void rewrite_backward(Rewrite *rewrite, const Operation *operation) {
    Operation changed = *operation;
    for (int i = 0; i < OPERATION_INPUTS; i++) {
        int input = changed.inputs[i].buffer;
        if (input < 0 || rewrite->producer[input] < 0) continue;
        make_again(rewrite, input);
        changed.inputs[i].buffer = rewrite->replacement[input];
    }
    put_operation(rewrite->program, &changed);
}

/* Finds the forward operation that writes each buffer dropped at this level. */
static void find_producers(Rewrite *rewrite, int buffers, RecomputeLevel level) {
    const Program *program = rewrite->program;
    for (int b = 0; b < buffers; b++) rewrite->producer[b] = rewrite->replacement[b] = -1;
    for (int o = 0; o < program->backward_begin; o++)
        for (int i = 0; i < OPERATION_OUTPUTS; i++) {
            int output = rewrite->source[o].outputs[i].buffer;
            if (output < 0) continue;
            int drop = program->buffers[output].recompute_level;
            if (drop > 0 && drop <= (int)level) rewrite->producer[output] = o;
        }
}

/* Writes the whole list anew: the forward pass as it was, the backward pass with its clones, and the
 * sections behind them, which move down by what was put in. */
static void rewrite_program(Rewrite *rewrite) {
    Program *program = rewrite->program;
    Section old = program->sections[SECTION_MICRO_BATCH];
    int count = program->operation_count;
    program->operations = NULL;
    program->operation_count = 0, program->operation_capacity = 0;
    program_begin_section(program, SECTION_MICRO_BATCH);
    for (int o = 0; o < program->backward_begin; o++) put_operation(program, &rewrite->source[o]);
    for (int o = program->backward_begin; o < old.count; o++)
        rewrite_backward(rewrite, &rewrite->source[o]);
    Section grown = program->sections[SECTION_MICRO_BATCH];
    for (int o = old.count; o < count; o++) put_operation(program, &rewrite->source[o]);
    program->sections[SECTION_MICRO_BATCH] = grown;
    for (int s = SECTION_MICRO_BATCH + 1; s < SECTIONS; s++)
        if (program->sections[s].count) program->sections[s].first += grown.count - old.count;
}

bool recompute_apply(Program *program, RecomputeLevel level, Error *error) {
    if (level == RECOMPUTE_NONE || !program->backward_begin) return true;
    int buffers = program->buffer_count;
    Rewrite rewrite = {.program = program, .source = program->operations};
    rewrite.producer = allocate((size_t)buffers, 2 * sizeof *rewrite.producer, error);
    if (!rewrite.producer) return false;
    rewrite.replacement = rewrite.producer + buffers;
    find_producers(&rewrite, buffers, level);
    rewrite_program(&rewrite);
    free(rewrite.source);
    free(rewrite.producer);
    return program_finish(program, error);
}
