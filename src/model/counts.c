/* Parameters and FLOPs of a model, from its sizes alone. */
#include "base/integer.h"
#include "model/config.h"

int64_t model_padded_vocab(const ModelConfig *config) {
    enum { MULTIPLE = 64 };
    if (!model_is_nanochat(config)) return config->vocab;
    return divide_up(config->vocab, MULTIPLE) * MULTIPLE;
}

static ModelCounts nanochat_counts(const ModelConfig *config) {
    int64_t table = model_padded_vocab(config) * config->dim, L = config->layers;
    int64_t value_layers = (L + 1) / 2, keys = config->kv_heads * config->head_dim;
    int64_t attention = 2 * config->dim * (config->dim + keys), mlp = 2 * config->dim * config->ffn;
    return (ModelCounts){
        .wte = table,
        .value_embeds = value_layers * model_padded_vocab(config) * keys,
        .lm_head = table,
        .transformer_matrices =
            L * (attention + mlp) + value_layers * config->kv_heads * VALUE_GATE_CHANNELS,
        .scalars = 2 * L + SMEAR_CHANNELS + 2, /* and the two lambdas */
    };
}

static ModelCounts llama_counts(const ModelConfig *config) {
    int64_t table = config->vocab * config->dim;
    int64_t attention = 2 * config->dim * config->head_dim * (config->heads + config->kv_heads);
    int64_t mlp = 3 * config->dim * config->ffn;
    return (ModelCounts){
        .wte = table,
        .lm_head = config->tied ? 0 : table,
        .transformer_matrices = config->layers * (attention + mlp),
        .scalars = (2 * config->layers + 1) * config->dim, /* the norms' weights */
    };
}

ModelCounts model_counts(const ModelConfig *config) {
    ModelCounts counts = model_is_nanochat(config) ? nanochat_counts(config) : llama_counts(config);
    counts.total = counts.wte + counts.value_embeds + counts.lm_head + counts.transformer_matrices +
                   counts.scalars;
    return counts;
}

int64_t model_parameters(const ModelConfig *config) {
    return model_counts(config).total;
}

int64_t model_scaling_parameters(const ModelConfig *config) {
    ModelCounts counts = model_counts(config);
    if (model_is_nanochat(config)) return counts.transformer_matrices + counts.lm_head;
    return counts.transformer_matrices + counts.scalars + counts.wte; /* as large as the head */
}

double model_flops_per_token(const ModelConfig *config) {
    int64_t keys = 0, T = config->sequence_length;
    for (int64_t layer = 0; layer < config->layers; layer++)
        keys += smaller(model_layer_window(config, layer), T);
    ModelCounts counts = model_counts(config);
    int64_t of_matmuls = counts.transformer_matrices + counts.wte; /* as large as the head */
    if (model_is_nanochat(config)) of_matmuls += SMEAR_CHANNELS;
    return 6.0 * (double)of_matmuls +
           12.0 * (double)(config->heads * config->head_dim) * (double)keys;
}
