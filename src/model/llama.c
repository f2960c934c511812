#include "model/llama.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/emit.h"
#include "step/recompute.h"

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
    program_parameter(program, 1, INIT_CONSTANT, 1, 0, "model.layers.%d.input_layernorm.weight", layer);
    program_weight(program, layer, queries + 2 * keys, C, WEIGHT_MATRIX, "layers.%d.qkv", layer);
    program_parameter(program, queries, INIT_NORMAL, std, 0, "model.layers.%d.self_attn.q_proj.weight",
                      layer);
    program_parameter(program, keys, INIT_NORMAL, std, 0, "model.layers.%d.self_attn.k_proj.weight",
                      layer);
    program_parameter(program, keys, INIT_NORMAL, std, 0, "model.layers.%d.self_attn.v_proj.weight",
                      layer);
    program_weight(program, layer, C, queries, WEIGHT_MATRIX, "layers.%d.output", layer);
    program_parameter(program, C, INIT_NORMAL, residual_std, 0,
                      "model.layers.%d.self_attn.o_proj.weight", layer);
    program_weight(program, layer, 1, C, WEIGHT_VECTOR, "layers.%d.norm2", layer);
    program_parameter(program, 1, INIT_CONSTANT, 1, 0, "model.layers.%d.post_attention_layernorm.weight",
                      layer);
    program_weight(program, layer, 2 * F, C, WEIGHT_MATRIX, "layers.%d.gate_up", layer);
    program_parameter(program, F, INIT_NORMAL, std, 0, "model.layers.%d.mlp.gate_proj.weight", layer);
    program_parameter(program, F, INIT_NORMAL, std, 0, "model.layers.%d.mlp.up_proj.weight", layer);
    program_weight(program, layer, C, F, WEIGHT_MATRIX, "layers.%d.down", layer);
    program_parameter(program, C, INIT_NORMAL, residual_std, 0, "model.layers.%d.mlp.down_proj.weight",
                      layer);
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

/* Where values are written: the program, and the shape of what flows through it. */
typedef struct Pass {
    Program *program;
    const ModelConfig *config;
    int64_t B, T, N;
    int document_start; /* -1: attention across documents */
    int first_cache; /* generation: keys and values of layer 0, then those of layer 1…; else -1 */
} Pass;

static int activation(const Pass *pass, int64_t columns, RecomputeLevel level, const char *name,
                      int layer) {
    int buffer = program_buffer(pass->program, BUFFER_ACTIVATION, pass->program->storage,
                                pass->N * columns, "%s %d", name, layer);
    if (buffer >= 0) pass->program->buffers[buffer].recompute_level = (int)level;
    return buffer;
}

static int statistic(const Pass *pass, int64_t elements, RecomputeLevel level, const char *name,
                     int layer) {
    int buffer =
        program_buffer(pass->program, BUFFER_ACTIVATION, DTYPE_F32, elements, "%s %d", name, layer);
    if (buffer >= 0) pass->program->buffers[buffer].recompute_level = (int)level;
    return buffer;
}

static int gradient(const Pass *pass, int64_t columns, const char *name, int layer) {
    return program_buffer(pass->program, BUFFER_ACTIVATION_GRADIENT, pass->program->storage,
                          pass->N * columns, "d%s %d", name, layer);
}

static AttentionShape attention_shape(const Pass *pass, int layer) {
    const ModelConfig *config = pass->config;
    return (AttentionShape){.B = pass->B,
                            .T = pass->T,
                            .H = config->heads,
                            .KV = config->kv_heads,
                            .D = config->head_dim,
                            .window = model_layer_window(config, layer),
                            .scale = 1.0f / sqrtf((float)config->head_dim)};
}

static int qkv_columns(const ModelConfig *config) {
    return (int)((config->heads + 2 * config->kv_heads) * config->head_dim);
}

static void attend(const Pass *pass, int layer, LayerValues *values) {
    AttentionShape shape = attention_shape(pass, layer);
    values->attention = activation(pass, shape.H * shape.D, RECOMPUTE_LAYER, "attention", layer);
    if (pass->first_cache >= 0) {
        int keys = pass->first_cache + 2 * layer;
        emit_attention_decode(pass->program, layer, values->attention, keys, keys + 1, values->qkv,
                              &shape);
        return;
    }
    values->lse = statistic(pass, pass->N * shape.H, RECOMPUTE_LAYER, "lse", layer);
    emit_attention_forward(pass->program, layer, values->attention, values->lse, values->qkv,
                           pass->document_start, &shape);
}

/* Writes the forward of a layer whose input is values->x; returns the buffer of its output. */
static int forward_layer(const Pass *pass, int layer, LayerValues *values) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int64_t C = config->dim, F = config->ffn, N = pass->N;
    AttentionShape shape = attention_shape(pass, layer);

    values->norm1 = activation(pass, C, RECOMPUTE_CHEAP, "norm1", layer);
    values->rstd1 = statistic(pass, N, RECOMPUTE_NONE, "rstd1", layer);
    emit_norm_forward(program, layer, values->norm1, values->rstd1, values->x,
                      layer_weight(layer, NORM1), N, config->norm_eps);
    int unrotated = activation(pass, qkv_columns(config), RECOMPUTE_LAYER, "unrotated qkv", layer);
    emit_linear(program, layer, whole(unrotated), whole(values->norm1), layer_weight(layer, QKV),
                operand_none, N);
    values->qkv = activation(pass, qkv_columns(config), RECOMPUTE_LAYER, "qkv", layer);
    emit_rope(program, layer, values->qkv, unrotated, &shape, false);
    attend(pass, layer, values);
    values->middle = activation(pass, C, RECOMPUTE_LAYER, "middle", layer);
    emit_linear(program, layer, whole(values->middle), whole(values->attention),
                layer_weight(layer, OUTPUT), whole(values->x), N);

    values->norm2 = activation(pass, C, RECOMPUTE_CHEAP, "norm2", layer);
    values->rstd2 = statistic(pass, N, RECOMPUTE_NONE, "rstd2", layer);
    emit_norm_forward(program, layer, values->norm2, values->rstd2, values->middle,
                      layer_weight(layer, NORM2), N, config->norm_eps);
    values->gate_up = activation(pass, 2 * F, RECOMPUTE_MLP, "gate and up", layer);
    emit_linear(program, layer, whole(values->gate_up), whole(values->norm2),
                layer_weight(layer, GATE_UP), operand_none, N);
    values->activated = activation(pass, F, RECOMPUTE_CHEAP, "activated", layer);
    emit_swiglu_forward(program, layer, values->activated, values->gate_up, N, F);
    int out = activation(pass, C, RECOMPUTE_NONE, "layer output", layer);
    emit_linear(program, layer, whole(out), whole(values->activated), layer_weight(layer, DOWN),
                whole(values->middle), N);
    return out;
}

/* dx[N,C] of a linear layer, and its weight gradient. */
static int backward_linear(const Pass *pass, int layer, LayerWeight which, int dout, int input,
                           const char *name) {
    int weight = layer_weight(layer, which);
    int64_t columns = pass->program->failed ? 0 : pass->program->weights[weight].columns;
    int dx = gradient(pass, columns, name, layer);
    emit_linear_input_gradient(pass->program, layer, whole(dx), whole(dout), weight, pass->N);
    emit_linear_weight_gradient(pass->program, layer, weight, whole(dout), whole(input), pass->N);
    return dx;
}

/* Writes the backward of a layer, given the gradient of its output; returns that of its input. */
static int backward_layer(const Pass *pass, int layer, const LayerValues *values, int dout) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int64_t C = config->dim, F = config->ffn, N = pass->N;
    AttentionShape shape = attention_shape(pass, layer);

    int dactivated = backward_linear(pass, layer, DOWN, dout, values->activated, "activated");
    int dgate_up = gradient(pass, 2 * F, "gate and up", layer);
    emit_swiglu_backward(program, layer, dgate_up, dactivated, values->gate_up, N, F);
    int dnorm2 = backward_linear(pass, layer, GATE_UP, dgate_up, values->norm2, "norm2");
    int dmiddle = gradient(pass, C, "middle", layer);
    emit_norm_backward(program, layer, dmiddle, dnorm2, dout, values->middle, values->rstd2,
                       layer_weight(layer, NORM2), N);

    int dattention = backward_linear(pass, layer, OUTPUT, dmiddle, values->attention, "attention");
    int dqkv = gradient(pass, qkv_columns(config), "qkv", layer);
    emit_attention_backward(program, layer, dqkv, dattention, values->attention, values->lse,
                            values->qkv, pass->document_start, &shape);
    int dunrotated = gradient(pass, qkv_columns(config), "unrotated qkv", layer);
    emit_rope(program, layer, dunrotated, dqkv, &shape, true);
    int dnorm1 = backward_linear(pass, layer, QKV, dunrotated, values->norm1, "norm1");
    int dx = gradient(pass, C, "layer input", layer);
    emit_norm_backward(program, layer, dx, dnorm1, dmiddle, values->x, values->rstd1,
                       layer_weight(layer, NORM1), N);
    return dx;
}

/* The head and the loss, a chunk of tokens at a time, so that all logits are never held. With `scale` > 0
 * also their backward: returns the gradient of the last norm's output. */
static int write_head(const Pass *pass, int normed, int64_t chunk, float scale) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int64_t C = config->dim, V = config->vocab, N = pass->N;
    int dnormed = scale > 0 ? gradient(pass, C, "last norm", 0) : -1;
    for (int64_t first = 0; first < N; first += chunk) {
        int64_t count = N - first < chunk ? N - first : chunk;
        Operand rows = {normed, first * C};
        Operand logits = whole(program_buffer(program, BUFFER_LOGITS, program->storage, count * V,
                                              "logits at %lld", (long long)first));
        emit_linear(program, -1, logits, rows, head(config), operand_none, count);
        emit_cross_entropy(program, (Operand){program->losses, first}, logits,
                           (Operand){program->targets, first}, count, V, scale);
        if (scale <= 0) continue;
        emit_linear_input_gradient(program, -1, (Operand){dnormed, first * C}, logits, head(config),
                                   count);
        emit_linear_weight_gradient(program, -1, head(config), logits, rows, count);
    }
    return dnormed;
}

static Pass micro_batch_pass(Program *program, const ModelConfig *config,
                             const ModelSettings *settings) {
    return (Pass){.program = program,
                  .config = config,
                  .B = settings->micro_batch,
                  .T = config->sequence_length,
                  .N = settings->micro_batch * config->sequence_length,
                  .document_start = settings->document_mask ? program->document_start : -1,
                  .first_cache = -1};
}

static int embed(const Pass *pass, int tokens) {
    int x = activation(pass, pass->config->dim, RECOMPUTE_NONE, "embedded", 0);
    emit_embedding_forward(pass->program, x, tokens, 0, pass->N);
    return x;
}

/* The last norm's output and its statistics. */
static int normalise_last(const Pass *pass, int x, int *rstd) {
    int normed = activation(pass, pass->config->dim, RECOMPUTE_NONE, "last norm", 0);
    *rstd = statistic(pass, pass->N, RECOMPUTE_NONE, "last rstd", 0);
    emit_norm_forward(pass->program, -1, normed, *rstd, x, last_norm(pass->config), pass->N,
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
    program_begin_section(program, SECTION_MICRO_BATCH);
    Pass pass = micro_batch_pass(program, config, settings);
    int layers = (int)config->layers, rstd;
    int x = embed(&pass, program->tokens);
    for (int layer = 0; layer < layers; layer++) {
        values[layer].x = x;
        x = forward_layer(&pass, layer, &values[layer]);
    }
    int normed = normalise_last(&pass, x, &rstd);
    program->backward_begin = program->operation_count;
    int dnormed =
        write_head(&pass, normed, settings->logit_chunk, 1.0f / (float)settings->batch_tokens);
    int dx = gradient(&pass, config->dim, "layer output", layers);
    emit_norm_backward(program, -1, dx, dnormed, -1, x, rstd, last_norm(config), pass.N);
    for (int layer = layers - 1; layer >= 0; layer--)
        dx = backward_layer(&pass, layer, &values[layer], dx);
    emit_embedding_backward(program, 0, dx, program->tokens, pass.N);
    program->loss_sum = program_buffer(program, BUFFER_OUTPUT, DTYPE_F64, 1, "loss sum");
    emit_loss_sum(program, pass.N);
    free(values);
}

static void write_evaluation(Program *program, const ModelConfig *config,
                             const ModelSettings *settings) {
    program_begin_section(program, SECTION_EVALUATE);
    Pass pass = micro_batch_pass(program, config, settings);
    LayerValues values;
    int rstd, x = embed(&pass, program->tokens);
    for (int layer = 0; layer < config->layers; layer++) {
        values.x = x;
        x = forward_layer(&pass, layer, &values);
    }
    write_head(&pass, normalise_last(&pass, x, &rstd), settings->logit_chunk, 0);
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

/* `count` new tokens through all layers and into the caches; returns the last layer's output. */
static int write_new_tokens(Pass *pass, SectionKind section, int64_t count) {
    program_begin_section(pass->program, section);
    pass->B = 1, pass->T = pass->N = count;
    LayerValues values;
    int x = embed(pass, pass->program->new_tokens);
    for (int layer = 0; layer < pass->config->layers; layer++) {
        values.x = x;
        x = forward_layer(pass, layer, &values);
    }
    return x;
}

static void write_generation(Program *program, const ModelConfig *config,
                             const ModelSettings *settings) {
    program->context = settings->context;
    program->prefill_tokens = settings->prefill;
    program->new_tokens =
        program_buffer(program, BUFFER_INPUT, DTYPE_I32, settings->prefill, "new tokens");
    program->logits =
        program_buffer(program, BUFFER_OUTPUT, DTYPE_F32, config->vocab, "next logits");
    Pass pass = {.program = program,
                 .config = config,
                 .document_start = -1,
                 .first_cache = make_caches(program, config)};
    write_new_tokens(&pass, SECTION_PREFILL, settings->prefill);
    int rstd, x = write_new_tokens(&pass, SECTION_DECODE, 1);
    emit_linear(program, -1, whole(program->logits), whole(normalise_last(&pass, x, &rstd)),
                head(config), operand_none, 1);
}

const Model model_llama = {
    .architecture = "llama",
    .declare = declare,
    .write_training = write_training,
    .write_evaluation = write_evaluation,
    .write_generation = write_generation,
};
