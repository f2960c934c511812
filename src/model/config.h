/* What a model is: its sizes and constants, from a preset, a Hugging Face config.json, options. */
#ifndef HEARTH_MODEL_CONFIG_H
#define HEARTH_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

enum { WINDOW_PATTERN_MAX = 64 };

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
    double init_std;                         /* of every normal initialisation */
    char window_pattern[WINDOW_PATTERN_MAX]; /* S or L for each layer, repeated; "L": no windows */
    int64_t window;         /* keys behind the query that an S layer sees; 0 = T/4 (nanochat: its rule) */
    int64_t long_window;    /* those that an L layer sees; 0 = all */
    int64_t bos_id, eos_id; /* -1 = none */
} ModelConfig;

bool model_is_nanochat(const ModelConfig *config);

/* Width of a nanochat model of that depth: 64 for each layer, rounded up to whole heads. */
int64_t model_nanochat_dim(int64_t depth, int64_t head_dim);

/* The preset of that name, or a config.json (or a directory that holds one) of a llama-family
 * model. A preset leaves vocab 0, for the tokenizer to decide. An unknown name gets the list of
 * presets. */
bool model_config_load(ModelConfig *config, const char *name, Error *error);

/* The preset names, NULL-terminated, and the vocabulary used when there is no tokenizer. */
const char *const *model_preset_names(void);
int64_t model_preset_vocab(const char *name);

/* Refuses sizes that cannot be trained, saying what would be accepted: an odd head dim, heads that
 * are not a multiple of kv heads, zeros, and products that overflow. */
bool model_config_check(const ModelConfig *config, Error *error);

/* The window of a layer in keys behind the query, or T when the layer sees everything. */
int64_t model_layer_window(const ModelConfig *config, int64_t layer);

/* From and to Hugging Face's config.json. Features that hearth does not have (attention biases,
 * rope scaling, another activation) are refused by name rather than ignored. */
bool model_config_from_json(ModelConfig *config, const json_t *json, Error *error);
json_t *model_config_to_json(const ModelConfig *config, const char *dtype, Error *error);

/* Parameters in all, and those that matter for scaling (all but the embedding; the head counts). */
int64_t model_parameters(const ModelConfig *config);
int64_t model_scaling_parameters(const ModelConfig *config);

/* Training FLOPs of one token as commonly counted: 6 for each parameter of a matmul, and 12 * H * D for
 * each key in reach of each layer, without halving for causality. */
double model_flops_per_token(const ModelConfig *config);

#endif
