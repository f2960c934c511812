#include "optim/adamw.h"

#include "base/integer.h"

int64_t adamw_state_elements(const Weight *weight) {
    return divide_up(weight->rows * weight->columns, STATE_BLOCK) * STATE_BLOCK;
}

void adamw_make_states(Program *program, const OptimizerSettings *settings, int64_t elements) {
    static const Dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_U8};
    Dtype dtype = dtypes[settings->state];
    if (!elements) return;
    program->moment1 = program_buffer(program, BUFFER_STATE, dtype, elements, "moment1");
    program->moment2 = program_buffer(program, BUFFER_STATE, dtype, elements, "moment2");
    if (settings->state != STATE_8BIT) return;
    int64_t blocks = elements / STATE_BLOCK;
    program->absmax1 = program_buffer(program, BUFFER_STATE, DTYPE_F32, blocks, "absmax1");
    program->absmax2 = program_buffer(program, BUFFER_STATE, DTYPE_F32, blocks, "absmax2");
}

void adamw_write(Program *program, int index, const OptimizerSettings *settings) {
    const Weight *weight = &program->weights[index];
    const OptimizerGroup *group = &settings->groups[weight->role];
    Operation *operation = program_add(program, OP_ADAMW, weight->layer);
    int64_t offset = weight->offset, state = weight->state_offset;
    operation->outputs[0] = (Operand){program->master, offset};
    if (program->working != program->master)
        operation->outputs[1] = (Operand){program->working, offset};
    operation->outputs[2] = (Operand){program->moment1, state};
    operation->outputs[3] = (Operand){program->moment2, state};
    if (settings->state == STATE_8BIT) {
        operation->outputs[4] = (Operand){program->absmax1, state / STATE_BLOCK};
        operation->outputs[5] = (Operand){program->absmax2, state / STATE_BLOCK};
    }
    operation->outputs[6] = (Operand){program->gradient, offset};
    operation->inputs[0] = whole(program->gradient_norm);
    operation->adamw = (AdamwShape){.n = weight->rows * weight->columns,
                                    .format = settings->state,
                                    .rate = group->rate,
                                    .beta1 = group->beta1,
                                    .beta2 = group->beta2,
                                    .epsilon = group->epsilon,
                                    .weight_decay = group->weight_decay,
                                    .clip_norm = settings->clip_norm,
                                    .tensor = (uint32_t)index};
}
