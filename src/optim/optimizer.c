#include "optim/optimizer.h"

#include "optim/adamw.h"
#include "optim/muon.h"

const char *state_format_name(StateFormat format) {
    static const char *const names[] = {"fp32", "bf16", "8bit"};
    return names[format];
}

OptimizerSettings optimizer_adamw(const AdamwSettings *settings) {
    OptimizerSettings all = {.clip_norm = settings->clip_norm};
    for (int role = 0; role < WEIGHT_ROLES; role++)
        all.groups[role] = (OptimizerGroup){
            .rate = 1,
            .beta1 = settings->beta1,
            .beta2 = settings->beta2,
            .epsilon = settings->epsilon,
            .weight_decay = role_is_matrix((WeightRole)role) ? settings->weight_decay : 0};
    return all;
}

/* Those of AdamW. */
static void make_moments(Program *program, const OptimizerSettings *settings) {
    int64_t elements = 0;
    for (int i = 0; i < program->weight_count; i++) {
        Weight *weight = &program->weights[i];
        weight->state_offset = -1;
        if (settings->groups[weight->role].muon) continue;
        weight->state_offset = elements;
        elements += adamw_state_elements(weight);
    }
    adamw_make_states(program, settings, elements);
}

void optimizer_write_update(Program *program, const OptimizerSettings *settings) {
    make_moments(program, settings);
    MuonBuffers muon = muon_make_buffers(program, settings);
    program->gradient_norm = program_buffer(program, BUFFER_OUTPUT, DTYPE_F32, 1, "gradient norm");
    program_begin_section(program, SECTION_UPDATE);

    Operation *norm = program_add(program, OP_GRADIENT_NORM, -1);
    norm->outputs[0] = whole(program->gradient_norm);
    norm->inputs[0] = whole(program->gradient);
    norm->elements.n = program_weight_elements(program);

    for (int i = 0; i < program->weight_count; i++)
        if (!settings->groups[program->weights[i].role].muon) adamw_write(program, i, settings);
    for (int i = 0; i < program->parameter_count; i++)
        if (program->parameters[i].momentum_offset >= 0) muon_write(program, i, settings, &muon);
}
