#include "model/llama.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/emit.h"
#include "model/pass.h"

/* Weights in the order in which they are declared: the embedding, six for each layer, the last norm, and
 * the head unless it is tied. */
typedef enum LayerWeight { NORM1, QKV, OUTPUT, NORM2, GATE_UP, DOWN, LAYER_WEIGHTS } LayerWeight;

static int layer_weight(int layer, LayerWeight which) {
    return 1 + layer * LAYER_WEIGHTS + (int)which;
}

static int last_norm(const ModelConfig *config) {
    return layer_weight((int)config->layers, NORM1);
}

static int head(const ModelConfig *config) {
    return config->tied ? 0 : last_norm(config) + 1;
}

static void declare_layer(Program *program, const ModelConfig *config, int layer) {
    int64_t C = config->dim, F = config->ffn;
    int64_t queries = config->heads * config->head_dim, keys = config->kv_heads * config->head_dim;
    float std = (float)config->init_std;
    /* The two projections back into the residual stream start smaller, as 2L of them add up there. */
    float residual_std = std / sqrtf(2.0f * (float)config->layers);
    program_weight(program, layer, 1, C, WEIGHT_VECTOR, "layers.%d.norm1", layer);
    program_parameter(program, 1, INIT_CONSTANT, 1, 0, "model.layers.%d.input_layernorm.weight",
                      layer);
    program_weight(program, layer, queries + 2 * keys, C, WEIGHT_MATRIX, "layers.%d.qkv", layer);
    program_parameter(program, queries, INIT_NORMAL, std, 0,
                      "model.layers.%d.self_attn.q_proj.weight", layer);
    program_parameter(program, keys, INIT_NORMAL, std, 0, "model.layers.%d.self_attn.k_proj.weight",
                      layer);
    program_parameter(program, keys, INIT_NORMAL, std, 0, "model.layers.%d.self_attn.v_proj.weight",
                      layer);
    program_weight(program, layer, C, queries, WEIGHT_MATRIX, "layers.%d.output", layer);
    program_parameter(program, C, INIT_NORMAL, residual_std, 0,
                      "model.layers.%d.self_attn.o_proj.weight", layer);
    program_weight(program, layer, 1, C, WEIGHT_VECTOR, "layers.%d.norm2", layer);
    program_parameter(program, 1, INIT_CONSTANT, 1, 0,
                      "model.layers.%d.post_attention_layernorm.weight", layer);
    program_weight(program, layer, 2 * F, C, WEIGHT_MATRIX, "layers.%d.gate_up", layer);
    program_parameter(program, F, INIT_NORMAL, std, 0, "model.layers.%d.mlp.gate_proj.weight",
                      layer);
    program_parameter(program, F, INIT_NORMAL, std, 0, "model.layers.%d.mlp.up_proj.weight", layer);
    program_weight(program, layer, C, F, WEIGHT_MATRIX, "layers.%d.down", layer);
    program_parameter(program, C, INIT_NORMAL, residual_std, 0,
                      "model.layers.%d.mlp.down_proj.weight", layer);
}

static void declare(Program *program, const ModelConfig *config) {
    float std = (float)config->init_std;
    program_weight(program, -1, config->vocab, config->dim, WEIGHT_EMBEDDING, "embedding");
    program_parameter(program, config->vocab, INIT_NORMAL, std, 0, "model.embed_tokens.weight");
    for (int layer = 0; layer < config->layers; layer++) declare_layer(program, config, layer);
    program_weight(program, -1, 1, config->dim, WEIGHT_VECTOR, "norm");
    program_parameter(program, 1, INIT_CONSTANT, 1, 0, "model.norm.weight");
    if (config->tied) return;
    program_weight(program, -1, config->vocab, config->dim, WEIGHT_HEAD, "head");
    program_parameter(program, config->vocab, INIT_NORMAL, std, 0, "lm_head.weight");
}

/* What one layer leaves for its backward. */
typedef struct LayerValues {
    int x, norm1, rstd1, qkv, attention, lse, middle, norm2, rstd2, gate_up, activated;
} LayerValues;

/* Writes the forward of a layer whose input is values->x; returns the buffer of its output. */
static int forward_layer(const Pass *pass, int layer, LayerValues *values) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int64_t C = config->dim, F = config->ffn, N = pass->N;
    AttentionShape shape = pass_attention_shape(pass, layer);

    values->norm1 = pass_activation(pass, C, RECOMPUTE_CHEAP, "norm1", layer);
    values->rstd1 = pass_statistic(pass, N, RECOMPUTE_NONE, "rstd1", layer);
    emit_norm_forward(program, layer, values->norm1, values->rstd1, values->x,
                      layer_weight(layer, NORM1), N, C, config->norm_eps);
    int unrotated =
        pass_activation(pass, pass_qkv_columns(config), RECOMPUTE_LAYER, "unrotated qkv", layer);
    emit_linear(program, layer, whole(unrotated), whole(values->norm1), layer_weight(layer, QKV),
                operand_none, N);
    values->qkv = pass_activation(pass, pass_qkv_columns(config), RECOMPUTE_LAYER, "qkv", layer);
    emit_rope_forward(program, layer, values->qkv, unrotated, pass->branch_start, &shape);
    values->attention = pass_attend(pass, layer, values->qkv, &values->lse);
    values->middle = pass_activation(pass, C, RECOMPUTE_LAYER, "middle", layer);
    emit_linear(program, layer, whole(values->middle), whole(values->attention),
                layer_weight(layer, OUTPUT), whole(values->x), N);

    values->norm2 = pass_activation(pass, C, RECOMPUTE_CHEAP, "norm2", layer);
    values->rstd2 = pass_statistic(pass, N, RECOMPUTE_NONE, "rstd2", layer);
    emit_norm_forward(program, layer, values->norm2, values->rstd2, values->middle,
                      layer_weight(layer, NORM2), N, C, config->norm_eps);
    values->gate_up = pass_activation(pass, 2 * F, RECOMPUTE_MLP, "gate and up", layer);
    emit_linear(program, layer, whole(values->gate_up), whole(values->norm2),
                layer_weight(layer, GATE_UP), operand_none, N);
    values->activated = pass_activation(pass, F, RECOMPUTE_CHEAP, "activated", layer);
    emit_swiglu_forward(program, layer, values->activated, values->gate_up, N, F);
    int out = pass_activation(pass, C, RECOMPUTE_NONE, "layer output", layer);
    emit_linear(program, layer, whole(out), whole(values->activated), layer_weight(layer, DOWN),
                whole(values->middle), N);
    return out;
}

/* Writes the backward of a layer, given the gradient of its output; returns that of its input. */
static int backward_layer(const Pass *pass, int layer, const LayerValues *values, int dout) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int64_t C = config->dim, F = config->ffn, N = pass->N;
    AttentionShape shape = pass_attention_shape(pass, layer);

    int dactivated = pass_linear_backward(pass, layer, layer_weight(layer, DOWN), dout,
                                          values->activated, "activated");
    int dgate_up = pass_gradient(pass, 2 * F, "gate and up", layer);
    emit_swiglu_backward(program, layer, dgate_up, dactivated, values->gate_up, N, F);
    int dnorm2 = pass_linear_backward(pass, layer, layer_weight(layer, GATE_UP), dgate_up,
                                      values->norm2, "norm2");
    int dmiddle = pass_gradient(pass, C, "middle", layer);
    emit_norm_backward(program, layer, dmiddle, dnorm2, dout, values->middle, values->rstd2,
                       layer_weight(layer, NORM2), N, C);

    int dattention = pass_linear_backward(pass, layer, layer_weight(layer, OUTPUT), dmiddle,
                                          values->attention, "attention");
    int dqkv = pass_gradient(pass, pass_qkv_columns(config), "qkv", layer);
    emit_attention_backward(program, layer, dqkv, dattention, values->attention, values->lse,
                            values->qkv, pass->document_start, &shape);
    int dunrotated = pass_gradient(pass, pass_qkv_columns(config), "unrotated qkv", layer);
    emit_rope_backward(program, layer, dunrotated, dqkv, &shape);
    int dnorm1 = pass_linear_backward(pass, layer, layer_weight(layer, QKV), dunrotated,
                                      values->norm1, "norm1");
    int dx = pass_gradient(pass, C, "layer input", layer);
    emit_norm_backward(program, layer, dx, dnorm1, dmiddle, values->x, values->rstd1,
                       layer_weight(layer, NORM1), N, C);
    return dx;
}

static int embed(const Pass *pass) {
    int x = pass_activation(pass, pass->config->dim, RECOMPUTE_NONE, "embedded", 0);
    emit_embedding_forward(pass->program, x, pass->tokens, 0, pass->N);
    return x;
}

/* The last norm's output and its statistics. */
static int normalise_last(const Pass *pass, int x, int *rstd) {
    int64_t C = pass->config->dim;
    int normed = pass_activation(pass, C, RECOMPUTE_NONE, "last norm", 0);
    *rstd = pass_statistic(pass, pass->N, RECOMPUTE_NONE, "last rstd", 0);
    emit_norm_forward(pass->program, -1, normed, *rstd, x, last_norm(pass->config), pass->N, C,
                      pass->config->norm_eps);
    return normed;
}

static void write_training(Program *program, const ModelConfig *config,
                           const ModelSettings *settings) {
    Error error;
    LayerValues *values = allocate((size_t)config->layers, sizeof *values, &error);
    if (!values) {
        program->failed = true;
        return;
    }
    Pass pass = pass_begin_micro_batch(program, SECTION_MICRO_BATCH, config, settings);
    int layers = (int)config->layers, rstd;
    int x = embed(&pass);
    for (int layer = 0; layer < layers; layer++) {
        values[layer].x = x;
        x = forward_layer(&pass, layer, &values[layer]);
    }
    int normed = normalise_last(&pass, x, &rstd);
    program->backward_begin = program->operation_count;
    int dnormed = pass_write_head(&pass, normed,
                                  &(Head){.weight = head(config),
                                          .chunk = settings->logit_chunk,
                                          .scale = 1.0f / (float)settings->batch_tokens});
    int dx = pass_gradient(&pass, config->dim, "layer output", layers);
    emit_norm_backward(program, -1, dx, dnormed, -1, x, rstd, last_norm(config), pass.N,
                       config->dim);
    for (int layer = layers - 1; layer >= 0; layer--)
        dx = backward_layer(&pass, layer, &values[layer], dx);
    emit_embedding_backward(program, 0, dx, program->tokens, pass.N);
    program->loss_sum = program_buffer(program, BUFFER_OUTPUT, DTYPE_F64, 1, "loss sum");
    emit_loss_sum(program, pass.N);
    free(values);
}

/* All layers, for a pass that nothing follows backward; returns the last one's output. */
static int forward(const Pass *pass) {
    LayerValues values;
    int x = embed(pass);
    for (int layer = 0; layer < pass->config->layers; layer++) {
        values.x = x;
        x = forward_layer(pass, layer, &values);
    }
    return x;
}

static void write_losses(const Pass *pass, int64_t chunk) {
    int rstd, normed = normalise_last(pass, forward(pass), &rstd);
    pass_write_head(pass, normed, &(Head){.weight = head(pass->config), .chunk = chunk});
}

static void write_evaluation(Program *program, const ModelConfig *config,
                             const ModelSettings *settings) {
    Pass pass = pass_begin_micro_batch(program, SECTION_EVALUATE, config, settings);
    write_losses(&pass, settings->logit_chunk);
}

static void write_generation(Program *program, const ModelConfig *config,
                             const ModelSettings *settings) {
    int caches = pass_make_generation(program, config, settings), rstd;
    Pass pass = pass_begin_generation(program, SECTION_PREFILL, config, caches);
    forward(&pass);
    pass = pass_begin_generation(program, SECTION_DECODE, config, caches);
    int normed = normalise_last(&pass, forward(&pass), &rstd);
    emit_linear(program, -1, whole(program->logits), whole(normed), head(config), operand_none, 1);
    if (!settings->score) return;
    pass = pass_begin_generation(program, SECTION_SCORE, config, caches);
    write_losses(&pass, settings->logit_chunk);
}

const Model model_llama = {
    .architecture = "llama",
    .declare = declare,
    .write_training = write_training,
    .write_evaluation = write_evaluation,
    .write_generation = write_generation,
};
