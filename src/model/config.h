/* What a model is: its sizes and constants, from a preset, a Hugging Face config.json, options. */
#ifndef HEARTH_MODEL_CONFIG_H
#define HEARTH_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

enum { WINDOW_PATTERN_MAX = 64 };

/* nanochat: columns of the input that its gates look at. */
enum { SMEAR_CHANNELS = 24, VALUE_GATE_CHANNELS = 12 };

typedef struct ModelConfig {
    char architecture[16];   /* "llama", "nanochat" */
    int64_t layers;          /* L */
    int64_t dim;             /* C */
    int64_t heads, kv_heads; /* H, KV */
    int64_t head_dim;        /* D; C / H unless given */
    int64_t ffn;             /* F */
    int64_t vocab;           /* V */
    int64_t sequence_length; /* T, the longest context trained on */
    bool tied;               /* the head shares the embedding's weights */
    double rope_theta;
    double norm_eps;
    double init_std;                         /* of every normal initialisation; llama only */
    char window_pattern[WINDOW_PATTERN_MAX]; /* S or L for each layer, repeated; "L": no windows */
    int64_t window; /* keys behind the query that an S layer sees; 0 = T/4 (nanochat: its rule) */
    int64_t long_window;    /* those that an L layer sees; 0 = all */
    int64_t bos_id, eos_id; /* -1 = none */
} ModelConfig;

bool model_is_nanochat(const ModelConfig *config);

/* The preset of that name, or a config.json (or a directory that holds one) of a llama or of a
 * nanochat. A preset leaves vocab 0, for the tokenizer to decide. An unknown name gets the list of
 * presets. */
bool model_config_load(ModelConfig *config, const char *name, Error *error);

/* A preset by its name, if there is one. */
bool model_preset(ModelConfig *config, const char *name);

/* nanochat's model of that depth: 64 dims for each layer, rounded up to whole heads. */
ModelConfig model_config_nanochat(int64_t depth, int64_t head_dim);

/* The preset names, NULL-terminated, and the vocabulary used when there is no tokenizer. */
const char *const *model_preset_names(void);
int64_t model_preset_vocab(const char *name);

/* Refuses sizes that cannot be trained, saying what would be accepted: an odd head dim, heads that
 * are not a multiple of kv heads, zeros, products that overflow, and what the architecture does not have. */
bool model_config_check(const ModelConfig *config, Error *error);

/* The window of a layer in keys behind the query; T or more when the layer sees everything. nanochat's
 * last layer is always L. */
int64_t model_layer_window(const ModelConfig *config, int64_t layer);

/* Another T than that of training: S layers keep their windows, and what nanochat's L layers saw in training
 * becomes their window. */
void model_config_set_sequence_length(ModelConfig *config, int64_t T);

/* nanochat: whether a layer adds value embeddings, which every second does, the last among them. */
static inline bool model_layer_has_values(const ModelConfig *config, int64_t layer) {
    return layer % 2 == (config->layers - 1) % 2;
}

/* Rows of the embedding and the head: nanochat's vocabulary is padded to a multiple of 64. */
int64_t model_padded_vocab(const ModelConfig *config);

/* From and to config.json: Hugging Face's for llama, for nanochat one with the names of its own GPTConfig.
 * Features that hearth does not have (attention biases, rope scaling, another activation) are refused by name
 * rather than ignored. */
bool model_config_from_json(ModelConfig *config, const json_t *json, Error *error);
json_t *model_config_to_json(const ModelConfig *config, const char *dtype, Error *error);

/* Parameters by groups, as nanochat counts them. */
typedef struct ModelCounts {
    int64_t wte, value_embeds, lm_head; /* lm_head is 0 when it is tied to wte */
    int64_t transformer_matrices;
    int64_t scalars; /* nanochat: with the smear gate; llama: the norms' weights */
    int64_t total;
} ModelCounts;

ModelCounts model_counts(const ModelConfig *config);

/* Parameters in all, and those that matter for scaling: llama: all but the embedding, the head counts;
 * nanochat: the layers' matrices and the head. */
int64_t model_parameters(const ModelConfig *config);
int64_t model_scaling_parameters(const ModelConfig *config);

/* Training FLOPs of one token as commonly counted: 6 for each parameter of a matmul, and 12 * H * D for
 * each key in reach of each layer, without halving for causality. */
double model_flops_per_token(const ModelConfig *config);

#endif
