/* A model's configuration as config.json: Hugging Face's names for llama, nanochat's own for nanochat. */
#include <string.h>

#include "model/config.h"

/* The member, or NULL where it is missing or null: there the library's default holds. */
static const json_t *member(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    return json_is_null(value) ? NULL : value;
}

static bool get_integer(const json_t *json, const char *key, int64_t *out, Error *error) {
    return !member(json, key) || json_get_integer(json, key, 0, INT32_MAX, out, error);
}

static bool get_number(const json_t *json, const char *key, double *out, Error *error) {
    return !member(json, key) || json_get_number(json, key, out, error);
}

static bool get_bool(const json_t *json, const char *key, bool *out, Error *error) {
    return !member(json, key) || json_get_bool(json, key, out, error);
}

typedef struct RequiredSize {
    const char *key;
    int64_t *out;
} RequiredSize;

/* The list ends with an empty row. */
static bool get_required(const json_t *json, const RequiredSize *sizes, Error *error) {
    for (; sizes->key; sizes++)
        if (!json_get_integer(json, sizes->key, 1, INT32_MAX, sizes->out, error)) return false;
    return true;
}

/* A token id: a number, or a list of which the first counts. */
static bool get_token(const json_t *json, const char *key, int64_t *out, Error *error) {
    const json_t *value = member(json, key);
    if (json_is_array(value)) value = json_array_get(value, 0);
    if (!value) return true;
    if (!json_is_integer(value)) return fail(error, "\"%s\" is not a token id", key);
    *out = json_integer_value(value);
    return true;
}

/* ---- Reading ---- */

/* A text member must be what hearth computes, or be left out. */
static bool require_text(const json_t *json, const char *key, const char *supported, Error *error) {
    if (!member(json, key)) return true;
    const char *text = json_get_string(json, key, error);
    if (!text) return false;
    if (strcmp(text, supported) == 0) return true;
    return fail(error, "%s \"%.40s\" is not supported; \"%s\" is%s", key, text, supported,
                strcmp(key, "model_type") ? "" : ", and so is \"nanochat\"");
}

static bool refuse_unsupported(const json_t *json, Error *error) {
    static const char *const switches[] = {"attention_bias", "mlp_bias"};
    if (!require_text(json, "model_type", "llama", error) ||
        !require_text(json, "hidden_act", "silu", error))
        return false;
    for (int i = 0; i < 2; i++) {
        bool on = false;
        if (!get_bool(json, switches[i], &on, error)) return false;
        if (on)
            return fail(error, "%s is not supported; hearth's models have no biases", switches[i]);
    }
    if (member(json, "quantization_config"))
        return fail(error, "quantization_config is not supported; give the model unquantized");
    return true;
}

/* The type of a rope_parameters (since transformers 5) or rope_scaling (before) object. */
static bool read_rope(const json_t *json, const char *key, double *theta, Error *error) {
    const json_t *rope = member(json, key);
    if (!rope) return true;
    double share = 1;
    if (!json_is_object(rope)) return fail(error, "\"%s\" is not an object", key);
    if (!require_text(rope, "rope_type", "default", error) ||
        !require_text(rope, "type", "default", error) ||
        !get_number(rope, "partial_rotary_factor", &share, error) ||
        !get_number(rope, "rope_theta", theta, error))
        return fail_within(error, "%s", key);
    return share == 1 || fail(error, "%s: partial_rotary_factor %g is not supported", key, share);
}

static bool read_sizes(ModelConfig *config, const json_t *json, Error *error) {
    const RequiredSize required[] = {
        {"num_hidden_layers", &config->layers},  {"hidden_size", &config->dim},
        {"num_attention_heads", &config->heads}, {"intermediate_size", &config->ffn},
        {"vocab_size", &config->vocab},          {0},
    };
    if (!get_required(json, required, error)) return false;
    config->kv_heads = config->heads;
    config->head_dim = config->dim / config->heads;
    return get_integer(json, "num_key_value_heads", &config->kv_heads, error) &&
           get_integer(json, "head_dim", &config->head_dim, error) &&
           get_integer(json, "max_position_embeddings", &config->sequence_length, error);
}

static bool read_window(ModelConfig *config, const json_t *json, Error *error) {
    if (!member(json, "window_pattern")) return true;
    const char *pattern = json_get_string(json, "window_pattern", error);
    if (!pattern) return false;
    size_t length = strlen(pattern);
    if (length >= WINDOW_PATTERN_MAX)
        return fail(error, "\"window_pattern\" has %zu letters; at most %d are supported", length,
                    WINDOW_PATTERN_MAX - 1);
    memcpy(config->window_pattern, pattern, length + 1);
    return get_integer(json, "window", &config->window, error) &&
           get_integer(json, "long_window", &config->long_window, error);
}

static bool read_llama(ModelConfig *config, const json_t *json, Error *error) {
    if (!refuse_unsupported(json, error)) return false;
    *config = (ModelConfig){
        .architecture = "llama", /* from here on the defaults are those of transformers */
        .sequence_length = 2048,
        .rope_theta = 10000,
        .norm_eps = 1e-6,
        .init_std = 0.02,
        .window_pattern = "L",
        .bos_id = -1,
        .eos_id = -1,
    };
    return read_sizes(config, json, error) &&
           get_number(json, "rope_theta", &config->rope_theta, error) &&
           read_rope(json, "rope_scaling", &config->rope_theta, error) &&
           read_rope(json, "rope_parameters", &config->rope_theta, error) &&
           get_number(json, "rms_norm_eps", &config->norm_eps, error) &&
           get_number(json, "initializer_range", &config->init_std, error) &&
           get_bool(json, "tie_word_embeddings", &config->tied, error) &&
           get_token(json, "bos_token_id", &config->bos_id, error) &&
           get_token(json, "eos_token_id", &config->eos_id, error) &&
           read_window(config, json, error) && model_config_check(config, error);
}

static bool read_nanochat(ModelConfig *config, const json_t *json, Error *error) {
    *config = model_config_nanochat(1, 128); /* the constants; the sizes follow */
    const RequiredSize required[] = {{"n_layer", &config->layers},
                                     {"n_embd", &config->dim},
                                     {"n_head", &config->heads},
                                     {"vocab_size", &config->vocab},
                                     {0}};
    if (!get_required(json, required, error)) return false;
    config->kv_heads = config->heads;
    config->head_dim = config->dim / config->heads;
    config->ffn = 4 * config->dim;
    return get_integer(json, "n_kv_head", &config->kv_heads, error) &&
           get_integer(json, "sequence_len", &config->sequence_length, error) &&
           get_number(json, "rope_theta", &config->rope_theta, error) &&
           get_number(json, "norm_eps", &config->norm_eps, error) &&
           get_token(json, "bos_token_id", &config->bos_id, error) &&
           get_token(json, "eos_token_id", &config->eos_id, error) &&
           read_window(config, json, error) && model_config_check(config, error);
}

bool model_config_from_json(ModelConfig *config, const json_t *json, Error *error) {
    const char *type = json_get_string(json, "model_type", error);
    if (!type) return false;
    return strcmp(type, "nanochat") == 0 ? read_nanochat(config, json, error)
                                         : read_llama(config, json, error);
}

/* ---- Writing ---- */

static json_t *token_or_null(int64_t id) {
    return id < 0 ? json_null() : json_integer(id);
}

/* Older readers look for rope_theta and torch_dtype, newer ones for rope_parameters and dtype. */
static json_t *write_llama(const ModelConfig *config, const char *dtype) {
    /* clang-format off: a key and its value belong together */
    return json_pack(
        "{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:s, s:b, s:b, s:f, s:b,"
        " s:f, s:{s:s, s:f}, s:o, s:o, s:s, s:s}",
        "architectures", "LlamaForCausalLM", "model_type", config->architecture, "vocab_size",
        (json_int_t)config->vocab, "hidden_size", (json_int_t)config->dim, "intermediate_size",
        (json_int_t)config->ffn, "num_hidden_layers", (json_int_t)config->layers,
        "num_attention_heads", (json_int_t)config->heads, "num_key_value_heads",
        (json_int_t)config->kv_heads, "head_dim", (json_int_t)config->head_dim,
        "max_position_embeddings", (json_int_t)config->sequence_length, "rms_norm_eps",
        config->norm_eps, "initializer_range", config->init_std, "hidden_act", "silu",
        "attention_bias", 0, "mlp_bias", 0, "attention_dropout", 0.0, "tie_word_embeddings",
        config->tied, "rope_theta", config->rope_theta, "rope_parameters", "rope_type", "default",
        "rope_theta", config->rope_theta, "bos_token_id", token_or_null(config->bos_id),
        "eos_token_id", token_or_null(config->eos_id), "torch_dtype", dtype, "dtype", dtype);
    /* clang-format on */
}

static json_t *write_nanochat(const ModelConfig *config, const char *dtype) {
    return json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:s, s:s}",
                     "architectures", "GPT", "model_type", config->architecture, "vocab_size",
                     (json_int_t)config->vocab, "sequence_len", (json_int_t)config->sequence_length,
                     "n_layer", (json_int_t)config->layers, "n_head", (json_int_t)config->heads,
                     "n_kv_head", (json_int_t)config->kv_heads, "n_embd", (json_int_t)config->dim,
                     "rope_theta", config->rope_theta, "norm_eps", config->norm_eps, "bos_token_id",
                     token_or_null(config->bos_id), "eos_token_id", token_or_null(config->eos_id),
                     "torch_dtype", dtype, "dtype", dtype);
}

static bool write_windows(json_t *json, const ModelConfig *config) {
    return json_object_set_new(json, "window_pattern", json_string(config->window_pattern)) == 0 &&
           json_object_set_new(json, "window", json_integer(config->window)) == 0 &&
           (!config->long_window ||
            json_object_set_new(json, "long_window", json_integer(config->long_window)) == 0);
}

json_t *model_config_to_json(const ModelConfig *config, const char *dtype, Error *error) {
    bool nanochat = model_is_nanochat(config);
    json_t *json = nanochat ? write_nanochat(config, dtype) : write_llama(config, dtype);
    bool windows = nanochat || strcmp(config->window_pattern, "L") != 0;
    if (json && (!windows || write_windows(json, config))) return json;
    json_decref(json);
    fail(error, "config.json cannot be made: memory is exhausted");
    return NULL;
}
