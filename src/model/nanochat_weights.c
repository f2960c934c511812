#include "model/nanochat_weights.h"

#include <math.h>

static const float gate_most = 0.02f; /* gates start from 0 to this */

/* The uniform distribution from -bound to bound has the deviation 1 / sqrt(C). */
static float uniform_bound(const ModelConfig *config) {
    return sqrtf(3.0f / (float)config->dim);
}

static void declare_layer(Program *program, const ModelConfig *config, int layer) {
    int64_t C = config->dim, F = config->ffn;
    int64_t queries = config->heads * config->head_dim, keys = config->kv_heads * config->head_dim;
    float s = uniform_bound(config), narrow = 0.4f * s;
    program_weight(program, layer, queries + 2 * keys, C, WEIGHT_MATRIX, "layers.%d.qkv", layer);
    program_parameter(program, queries, INIT_UNIFORM, -s, s, "transformer.h.%d.attn.c_q.weight",
                      layer);
    program_parameter(program, keys, INIT_UNIFORM, -s, s, "transformer.h.%d.attn.c_k.weight",
                      layer);
    program_parameter(program, keys, INIT_UNIFORM, -s, s, "transformer.h.%d.attn.c_v.weight",
                      layer);
    program_weight(program, layer, C, queries, WEIGHT_MATRIX, "layers.%d.output", layer);
    program_parameter(program, C, INIT_CONSTANT, 0, 0, "transformer.h.%d.attn.c_proj.weight",
                      layer);
    program_weight(program, layer, F, C, WEIGHT_MATRIX, "layers.%d.fc", layer);
    program_parameter(program, F, INIT_UNIFORM, -narrow, narrow, "transformer.h.%d.mlp.c_fc.weight",
                      layer);
    program_weight(program, layer, C, F, WEIGHT_MATRIX, "layers.%d.projection", layer);
    program_parameter(program, C, INIT_CONSTANT, 0, 0, "transformer.h.%d.mlp.c_proj.weight", layer);
}

static void declare_values(Program *program, const ModelConfig *config, int layer) {
    int64_t V = model_padded_vocab(config), keys = config->kv_heads * config->head_dim;
    float s = uniform_bound(config);
    program_weight(program, layer, config->kv_heads, VALUE_GATE_CHANNELS, WEIGHT_MATRIX,
                   "layers.%d.value_gate", layer);
    program_parameter(program, config->kv_heads, INIT_UNIFORM, 0, gate_most,
                      "transformer.h.%d.attn.ve_gate.weight", layer);
    program_weight(program, layer, V, keys, WEIGHT_VALUE_EMBEDDING, "layers.%d.values", layer);
    program_parameter(program, V, INIT_UNIFORM, -s, s, "value_embeds.%d.weight", layer);
}

static void declare_scalars(Program *program, int64_t L) {
    program_weight(program, -1, 1, L, WEIGHT_RESIDUAL_SCALE, "residual scales");
    program_parameter(program, 1, INIT_LINE, 1.15f, 1.05f, "resid_lambdas");
    program_weight(program, -1, 1, L, WEIGHT_INPUT_SCALE, "input scales");
    program_parameter(program, 1, INIT_LINE, 0.20f, 0.05f, "x0_lambdas");
    program_weight(program, -1, 1, 1, WEIGHT_SCALAR, "smear lambda");
    program_parameter(program, 1, INIT_CONSTANT, 0, 0, "smear_lambda");
    program_weight(program, -1, 1, 1, WEIGHT_SCALAR, "backout lambda");
    program_parameter(program, 1, INIT_CONSTANT, 0.2f, 0, "backout_lambda");
}

void nanochat_declare(Program *program, const ModelConfig *config) {
    int64_t C = config->dim, V = model_padded_vocab(config);
    program_weight(program, -1, V, C, WEIGHT_EMBEDDING, "embedding");
    program_parameter(program, V, INIT_NORMAL, 0.8f, 0, "transformer.wte.weight");
    for (int layer = 0; layer < config->layers; layer++) declare_layer(program, config, layer);
    for (int layer = 0; layer < config->layers; layer++)
        if (model_layer_has_values(config, layer)) declare_values(program, config, layer);
    program_weight(program, -1, V, C, WEIGHT_HEAD, "head");
    program_parameter(program, V, INIT_NORMAL, 0.001f, 0, "lm_head.weight");
    program_weight(program, -1, 1, SMEAR_CHANNELS, WEIGHT_SMEAR_GATE, "smear gate");
    program_parameter(program, 1, INIT_UNIFORM, 0, gate_most, "smear_gate.weight");
    declare_scalars(program, config->layers);
}
