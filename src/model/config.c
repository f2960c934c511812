#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { CONFIG_BYTES_MAX = 1 << 20 };
enum { HEAD_DIM_MOST = 256 }; /* what the attention kernels hold in a block */

/* ---- Presets ---- */

typedef struct Preset {
    const char *name;
    int64_t layers, dim, heads, ffn, vocab, sequence_length;
} Preset;

static const Preset presets[] = {
    {"llama-15m", 6, 288, 6, 768, 32000, 256},
    {"llama-42m", 8, 512, 8, 1376, 32000, 1024},
    {"llama-110m", 12, 768, 12, 2048, 32000, 1024},
    {"llama-300m", 24, 960, 15, 2560, 32768, 2048},
    {"llama-600m", 28, 1280, 20, 3456, 32768, 2048},
    {"llama-977m", 24, 1792, 16, 4736, 32000, 2048},
};
enum { PRESETS = sizeof presets / sizeof *presets };

static const Preset *find_preset(const char *name) {
    for (int i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

const char *const *model_preset_names(void) {
    static const char *names[PRESETS + 1];
    for (int i = 0; i < PRESETS; i++) names[i] = presets[i].name;
    return names;
}

int64_t model_preset_vocab(const char *name) {
    const Preset *preset = find_preset(name);
    return preset ? preset->vocab : 0;
}

static ModelConfig preset_config(const Preset *preset) {
    return (ModelConfig){
        .architecture = "llama",
        .layers = preset->layers,
        .dim = preset->dim,
        .heads = preset->heads,
        .kv_heads = preset->heads,
        .head_dim = preset->dim / preset->heads,
        .ffn = preset->ffn,
        .sequence_length = preset->sequence_length,
        .tied = true,
        .rope_theta = 10000,
        .norm_eps = 1e-5,
        .init_std = 0.02,
        .window_pattern = "L",
        .bos_id = -1,
        .eos_id = -1,
    };
}

static bool load_file(ModelConfig *config, const char *path, Error *error) {
    json_t *json = json_read_file(path, CONFIG_BYTES_MAX, error);
    if (!json) return false;
    bool done = model_config_from_json(config, json, error);
    json_decref(json);
    return done || fail_within(error, "%s", path);
}

bool model_config_load(ModelConfig *config, const char *name, Error *error) {
    const Preset *preset = find_preset(name);
    if (preset) {
        *config = preset_config(preset);
        return true;
    }
    if (path_is_directory(name)) {
        char *path = path_join(name, "config.json", error);
        bool done = path && load_file(config, path, error);
        free(path);
        return done;
    }
    if (path_exists(name)) return load_file(config, name, error);
    char list[512] = "";
    for (int i = 0; i < PRESETS; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", presets[i].name);
    }
    return fail(error, "no model is named '%s'; give a preset (%s) or a Hugging Face config.json",
                name, list);
}

/* ---- Limits ---- */

/* The limits keep every count of parameters, and its bytes with optimizer state, below 2^62. */
static bool check_sizes(const ModelConfig *config, Error *error) {
    const struct {
        const char *name;
        int64_t value, maximum;
    } sizes[] = {
        {"layers", config->layers, 4096},
        {"dim", config->dim, 1 << 20},
        {"heads", config->heads, 1 << 16},
        {"kv_heads", config->kv_heads, 1 << 16},
        {"ffn", config->ffn, 1 << 22},
        {"vocab", config->vocab, INT32_MAX},
        {"sequence length", config->sequence_length, 1 << 24},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].maximum)
            return fail(error, "%s is %lld; it must be from 1 to %lld", sizes[i].name,
                        (long long)sizes[i].value, (long long)sizes[i].maximum);
    return true;
}

/* " 1, 2, 4": the divisors of number, as many as fit. */
static const char *divisors(char *out, size_t size, int64_t number) {
    size_t used = 0;
    *out = 0;
    for (int64_t divisor = 1; divisor <= number && used + 24 < size; divisor++)
        if (number % divisor == 0)
            used += (size_t)snprintf(out + used, size - used, "%s%lld", used ? ", " : "",
                                     (long long)divisor);
    return out;
}

static bool check_heads(const ModelConfig *config, Error *error) {
    char list[256];
    long long dim = config->dim, heads = config->heads, head_dim = config->head_dim;
    if (dim % heads != 0) /* transformers refuses it even where head_dim is given */
        return fail(error,
                    "dim %lld is not divisible by heads %lld; the nearest dims are %lld, %lld", dim,
                    heads, dim / heads * heads, (dim / heads + 1) * heads);
    if (heads % config->kv_heads != 0)
        return fail(error, "heads %lld is not divisible by kv_heads %lld; kv_heads may be %s",
                    heads, (long long)config->kv_heads, divisors(list, sizeof list, heads));
    if (head_dim < 2 || head_dim > HEAD_DIM_MOST || head_dim > (1 << 20) / heads)
        return fail(error,
                    "head_dim %lld (dim %lld, heads %lld) must be from 2 to %d; choose more heads",
                    head_dim, dim, heads, HEAD_DIM_MOST);
    if (head_dim % 2 != 0)
        return fail(error,
                    "head_dim %lld (dim %lld, heads %lld) is odd, but RoPE rotates pairs; "
                    "choose dim and heads so that dim / heads is even",
                    head_dim, dim, heads);
    return true;
}

static bool check_constants(const ModelConfig *config, Error *error) {
    if (!(config->rope_theta > 0) || !isfinite(config->rope_theta))
        return fail(error, "rope_theta %g must be above 0", config->rope_theta);
    if (!(config->norm_eps >= 0 && config->norm_eps < 1))
        return fail(error, "norm_eps %g must be from 0 to below 1", config->norm_eps);
    if (!(config->init_std >= 0) || !isfinite(config->init_std))
        return fail(error, "init_std %g must be 0 or above", config->init_std);
    if (config->bos_id < -1 || config->bos_id >= config->vocab || config->eos_id < -1 ||
        config->eos_id >= config->vocab)
        return fail(error, "bos id %lld or eos id %lld is not in the vocabulary of %lld tokens",
                    (long long)config->bos_id, (long long)config->eos_id, (long long)config->vocab);
    return true;
}

static bool check_window(const ModelConfig *config, Error *error) {
    size_t length = strnlen(config->window_pattern, WINDOW_PATTERN_MAX);
    if (length == 0 || length == WINDOW_PATTERN_MAX ||
        strspn(config->window_pattern, "SL") != length)
        return fail(error, "window pattern '%.63s' must be 1 to %d letters S (window) or L (all)",
                    config->window_pattern, WINDOW_PATTERN_MAX - 1);
    if (config->window < 0 || config->window > config->sequence_length)
        return fail(error, "window %lld must be from 0 (a quarter of the sequence) to %lld",
                    (long long)config->window, (long long)config->sequence_length);
    return true;
}

bool model_config_check(const ModelConfig *config, Error *error) {
    if (strncmp(config->architecture, "llama", sizeof config->architecture) != 0)
        return fail(error, "architecture '%.15s' is not supported; llama is", config->architecture);
    return check_sizes(config, error) && check_heads(config, error) &&
           check_constants(config, error) && check_window(config, error);
}

/* ---- Derived ---- */

bool model_is_nanochat(const ModelConfig *config) {
    return strncmp(config->architecture, "nanochat", sizeof config->architecture) == 0;
}

int64_t model_nanochat_dim(int64_t depth, int64_t head_dim) {
    return (64 * depth + head_dim - 1) / head_dim * head_dim;
}

int64_t model_layer_window(const ModelConfig *config, int64_t layer) {
    int64_t period = (int64_t)strlen(config->window_pattern);
    if (config->window_pattern[layer % period] == 'L') return config->sequence_length;
    if (config->window > 0) return config->window;
    return config->sequence_length < 4 ? 1 : config->sequence_length / 4;
}

int64_t model_scaling_parameters(const ModelConfig *config) {
    int64_t attention = 2 * config->dim * config->head_dim * (config->heads + config->kv_heads);
    int64_t mlp = 3 * config->dim * config->ffn, norms = 2 * config->dim;
    return config->layers * (attention + mlp + norms) + config->dim + config->vocab * config->dim;
}

int64_t model_parameters(const ModelConfig *config) {
    int64_t embedding = config->tied ? 0 : config->vocab * config->dim;
    return model_scaling_parameters(config) + embedding;
}

double model_flops_per_token(const ModelConfig *config) {
    int64_t norms = (2 * config->layers + 1) * config->dim, keys = 0;
    for (int64_t layer = 0; layer < config->layers; layer++) {
        int64_t window = model_layer_window(config, layer);
        keys += window < config->sequence_length ? window : config->sequence_length;
    }
    return 6.0 * (double)(model_scaling_parameters(config) - norms) +
           12.0 * (double)(config->heads * config->head_dim) * (double)keys;
}
