#include "model/pass.h"

#include <math.h>

#include "base/integer.h"
#include "model/emit.h"

Pass pass_begin_micro_batch(Program *program, SectionKind section, const ModelConfig *config,
                            const ModelSettings *settings) {
    program_begin_section(program, section);
    return (Pass){.program = program,
                  .config = config,
                  .B = settings->micro_batch,
                  .T = config->sequence_length,
                  .N = settings->micro_batch * config->sequence_length,
                  .tokens = program->tokens,
                  .targets = program->targets,
                  .losses = program->losses,
                  .best = -1,
                  .document_start = settings->document_mask ? program->document_start : -1,
                  .branch_start = -1,
                  .first_cache = -1};
}

static int make_caches(Program *program, const ModelConfig *config) {
    int64_t elements = program->context * config->kv_heads * config->head_dim;
    int first = program->buffer_count;
    for (int layer = 0; layer < config->layers; layer++) {
        program_buffer(program, BUFFER_CACHE, program->storage, elements, "key cache %d", layer);
        program_buffer(program, BUFFER_CACHE, program->storage, elements, "value cache %d", layer);
    }
    return first;
}

static void make_score_buffers(Program *program) {
    int64_t n = program->score_tokens;
    if (!n) return;
    program->score_input = program_buffer(program, BUFFER_INPUT, DTYPE_I32, n, "score input");
    program->score_start = program_buffer(program, BUFFER_INPUT, DTYPE_I32, n, "score start");
    program->score_targets = program_buffer(program, BUFFER_INPUT, DTYPE_I32, n, "score targets");
    program->score_losses = program_buffer(program, BUFFER_OUTPUT, DTYPE_F32, n, "score losses");
    program->score_best = program_buffer(program, BUFFER_OUTPUT, DTYPE_I32, n, "score best");
}

int pass_make_generation(Program *program, const ModelConfig *config,
                         const ModelSettings *settings) {
    program->context = settings->context;
    program->prefill_tokens = settings->prefill;
    program->score_tokens = settings->score;
    program->new_tokens =
        program_buffer(program, BUFFER_INPUT, DTYPE_I32, settings->prefill, "new tokens");
    program->logits =
        program_buffer(program, BUFFER_OUTPUT, DTYPE_F32, config->vocab, "next logits");
    make_score_buffers(program);
    return make_caches(program, config);
}

Pass pass_begin_generation(Program *program, SectionKind section, const ModelConfig *config,
                           int first_cache) {
    program_begin_section(program, section);
    bool score = section == SECTION_SCORE;
    int64_t count = score                        ? program->score_tokens
                    : section == SECTION_PREFILL ? program->prefill_tokens
                                                 : 1;
    return (Pass){.program = program,
                  .config = config,
                  .B = 1,
                  .T = count,
                  .N = count,
                  .tokens = score ? program->score_input : program->new_tokens,
                  .targets = score ? program->score_targets : -1,
                  .losses = score ? program->score_losses : -1,
                  .best = score ? program->score_best : -1,
                  .document_start = -1,
                  .branch_start = score ? program->score_start : -1,
                  .first_cache = first_cache};
}

static int add_buffer(const Pass *pass, Dtype dtype, int64_t elements, RecomputeLevel level,
                      const char *name, int layer) {
    int buffer =
        program_buffer(pass->program, BUFFER_ACTIVATION, dtype, elements, "%s %d", name, layer);
    if (buffer >= 0) pass->program->buffers[buffer].recompute_level = (int)level;
    return buffer;
}

int pass_activation(const Pass *pass, int64_t columns, RecomputeLevel level, const char *name,
                    int layer) {
    return add_buffer(pass, pass->program->storage, pass->N * columns, level, name, layer);
}

int pass_statistic(const Pass *pass, int64_t elements, RecomputeLevel level, const char *name,
                   int layer) {
    return add_buffer(pass, DTYPE_F32, elements, level, name, layer);
}

int pass_gradient(const Pass *pass, int64_t columns, const char *name, int layer) {
    return program_buffer(pass->program, BUFFER_ACTIVATION_GRADIENT, pass->program->storage,
                          pass->N * columns, "d%s %d", name, layer);
}

AttentionShape pass_attention_shape(const Pass *pass, int layer) {
    const ModelConfig *config = pass->config;
    return (AttentionShape){.B = pass->B,
                            .T = pass->T,
                            .H = config->heads,
                            .KV = config->kv_heads,
                            .D = config->head_dim,
                            .window = model_layer_window(config, layer),
                            .scale = 1.0f / sqrtf((float)config->head_dim)};
}

int64_t pass_qkv_columns(const ModelConfig *config) {
    return (config->heads + 2 * config->kv_heads) * config->head_dim;
}

int pass_attend(const Pass *pass, int layer, int qkv, int *lse) {
    AttentionShape shape = pass_attention_shape(pass, layer);
    int out = pass_activation(pass, shape.H * shape.D, RECOMPUTE_LAYER, "attention", layer);
    *lse = -1;
    if (pass->first_cache >= 0) {
        int keys = pass->first_cache + 2 * layer;
        emit_attention_decode(pass->program, layer, out, keys, keys + 1, qkv, pass->branch_start,
                              &shape);
        return out;
    }
    *lse = pass_statistic(pass, pass->N * shape.H, RECOMPUTE_LAYER, "lse", layer);
    emit_attention_forward(pass->program, layer, out, *lse, qkv, pass->document_start, &shape);
    return out;
}

int pass_linear_backward(const Pass *pass, int layer, int weight, int dout, int input,
                         const char *name) {
    int64_t columns = pass->program->failed ? 0 : pass->program->weights[weight].columns;
    int dx = pass_gradient(pass, columns, name, layer);
    emit_linear_input_gradient(pass->program, layer, whole(dx), whole(dout), weight, pass->N);
    emit_linear_weight_gradient(pass->program, layer, weight, whole(dout), whole(input), pass->N);
    return dx;
}

static void write_chunk(const Pass *pass, int normed, int dnormed, const Head *head, int64_t first,
                        int64_t count) {
    Program *program = pass->program;
    int64_t C = pass->config->dim, stride = model_padded_vocab(pass->config);
    Operand rows = {normed, first * C};
    Operand logits = whole(program_buffer(program, BUFFER_LOGITS, program->storage, count * stride,
                                          "logits at %lld", (long long)first));
    emit_linear(program, -1, logits, rows, head->weight, operand_none, count);
    emit_cross_entropy(program, (Operand){pass->losses, first}, logits,
                       (Operand){pass->best, first}, (Operand){pass->targets, first},
                       (CrossEntropyShape){.N = count,
                                           .V = pass->config->vocab,
                                           .stride = stride,
                                           .scale = head->scale,
                                           .cap = head->cap,
                                           .gradient = head->scale > 0});
    if (head->scale <= 0) return;
    emit_linear_input_gradient(program, -1, (Operand){dnormed, first * C}, logits, head->weight,
                               count);
    emit_linear_weight_gradient(program, -1, head->weight, logits, rows, count);
}

int pass_write_head(const Pass *pass, int normed, const Head *head) {
    int dnormed = head->scale > 0 ? pass_gradient(pass, pass->config->dim, "last norm", 0) : -1;
    for (int64_t first = 0; first < pass->N; first += head->chunk)
        write_chunk(pass, normed, dnormed, head, first, smaller(pass->N - first, head->chunk));
    return dnormed;
}
