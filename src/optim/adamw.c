#include "optim/optimizer.h"

const char *state_format_name(StateFormat format) {
    static const char *const names[] = {"fp32", "bf16", "8bit"};
    return names[format];
}

static void make_moments(Program *program, StateFormat format) {
    static const Dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_U8};
    int64_t elements = program_weight_elements(program);
    program->moment1 = program_buffer(program, BUFFER_STATE, dtypes[format], elements, "moment1");
    program->moment2 = program_buffer(program, BUFFER_STATE, dtypes[format], elements, "moment2");
    if (format != STATE_8BIT) return;
    int64_t blocks = elements / STATE_BLOCK;
    program->absmax1 = program_buffer(program, BUFFER_STATE, DTYPE_F32, blocks, "absmax1");
    program->absmax2 = program_buffer(program, BUFFER_STATE, DTYPE_F32, blocks, "absmax2");
}

static void write_adamw(Program *program, int index, const AdamwSettings *settings) {
    const Weight *weight = &program->weights[index];
    Operation *operation = program_add(program, OP_ADAMW, weight->layer);
    int64_t offset = weight->offset;
    operation->outputs[0] = (Operand){program->master, offset};
    if (program->working != program->master)
        operation->outputs[1] = (Operand){program->working, offset};
    operation->outputs[2] = (Operand){program->moment1, offset};
    operation->outputs[3] = (Operand){program->moment2, offset};
    if (settings->state == STATE_8BIT) {
        operation->outputs[4] = (Operand){program->absmax1, offset / STATE_BLOCK};
        operation->outputs[5] = (Operand){program->absmax2, offset / STATE_BLOCK};
    }
    operation->outputs[6] = (Operand){program->gradient, offset};
    operation->inputs[0] = whole(program->gradient_norm);
    operation->adamw = (AdamwShape){.n = weight->rows * weight->columns,
                                    .format = settings->state,
                                    .beta1 = settings->beta1,
                                    .beta2 = settings->beta2,
                                    .epsilon = settings->epsilon,
                                    .weight_decay = weight->is_matrix ? settings->weight_decay : 0,
                                    .clip_norm = settings->clip_norm,
                                    .tensor = (uint32_t)index};
}

void adamw_write_update(Program *program, const AdamwSettings *settings) {
    int64_t elements = program_weight_elements(program);
    make_moments(program, settings->state);
    program->gradient_norm = program_buffer(program, BUFFER_OUTPUT, DTYPE_F32, 1, "gradient norm");
    program_begin_section(program, SECTION_UPDATE);

    Operation *norm = program_add(program, OP_GRADIENT_NORM, -1);
    norm->outputs[0] = whole(program->gradient_norm);
    norm->inputs[0] = whole(program->gradient);
    norm->elements.n = elements;

    for (int i = 0; i < program->weight_count; i++) write_adamw(program, i, settings);
}
