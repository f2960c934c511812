#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/integer.h"

enum { CONFIG_BYTES_MAX = 1 << 20 };
enum { HEAD_DIM_MOST = 256 }; /* what the attention kernels hold in a block */

bool model_is_nanochat(const ModelConfig *config) {
    return strncmp(config->architecture, "nanochat", sizeof config->architecture) == 0;
}

static bool load_file(ModelConfig *config, const char *path, Error *error) {
    json_t *json = json_read_file(path, CONFIG_BYTES_MAX, error);
    if (!json) return false;
    bool done = model_config_from_json(config, json, error);
    json_decref(json);
    return done || fail_within(error, "%s", path);
}

bool model_config_load(ModelConfig *config, const char *name, Error *error) {
    if (model_preset(config, name)) return true;
    if (path_is_directory(name)) {
        char *path = path_join(name, "config.json", error);
        bool done = path && load_file(config, path, error);
        free(path);
        return done;
    }
    if (path_exists(name)) return load_file(config, name, error);
    char list[512] = "";
    for (const char *const *preset = model_preset_names(); *preset; preset++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", *preset);
    }
    return fail(error, "no model is named '%s'; give a preset (%s) or a config.json", name, list);
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
    if (config->long_window < 0 || config->long_window > config->sequence_length)
        return fail(error, "the L layers' window %lld must be from 0 (all) to %lld",
                    (long long)config->long_window, (long long)config->sequence_length);
    return true;
}

/* What a nanochat cannot have: its own code has no place for it. */
static bool check_nanochat(const ModelConfig *config, Error *error) {
    long long dim = config->dim, heads = config->heads, head_dim = config->head_dim;
    if (config->tied)
        return fail(error, "nanochat's embedding and head are not tied; leave out "
                           "--tie-embeddings");
    if (dim < SMEAR_CHANNELS)
        return fail(error, "dim %lld is below %d, the columns that nanochat's smear gate looks at",
                    dim, SMEAR_CHANNELS);
    if (dim != heads * head_dim)
        return fail(error,
                    "dim %lld must be heads %lld * head_dim %lld in a nanochat; a dim of %lld "
                    "would be",
                    dim, heads, head_dim, heads * head_dim);
    if (config->ffn != 4 * config->dim)
        return fail(error, "ffn %lld must be 4 * dim in a nanochat: %lld", (long long)config->ffn,
                    4 * dim);
    if ((double)config->vocab * (double)dim * (double)config->layers > 0x1p50)
        return fail(error,
                    "vocab %lld * dim %lld * layers %lld is above 2^50, which no memory "
                    "holds the value embeddings of; choose a smaller model",
                    (long long)config->vocab, dim, (long long)config->layers);
    return true;
}

bool model_config_check(const ModelConfig *config, Error *error) {
    bool nanochat = model_is_nanochat(config);
    if (!nanochat && strncmp(config->architecture, "llama", sizeof config->architecture) != 0)
        return fail(error, "architecture '%.15s' is not supported; llama and nanochat are",
                    config->architecture);
    return check_sizes(config, error) && check_heads(config, error) &&
           check_constants(config, error) && check_window(config, error) &&
           (!nanochat || check_nanochat(config, error));
}

/* ---- Windows ---- */

/* nanochat's quarter of T is rounded up to whole blocks of 128. */
static int64_t short_window(const ModelConfig *config) {
    int64_t T = config->sequence_length;
    if (config->window > 0) return config->window;
    if (model_is_nanochat(config)) return divide_up(T, 512) * 128;
    return T < 4 ? 1 : T / 4;
}

static int64_t long_window(const ModelConfig *config) {
    return config->long_window > 0 ? config->long_window : config->sequence_length;
}

int64_t model_layer_window(const ModelConfig *config, int64_t layer) {
    int64_t period = (int64_t)strlen(config->window_pattern);
    bool sees_all = config->window_pattern[layer % period] == 'L' ||
                    (model_is_nanochat(config) && layer == config->layers - 1);
    return sees_all ? long_window(config) : short_window(config);
}

void model_config_set_sequence_length(ModelConfig *config, int64_t T) {
    config->window = smaller(short_window(config), T);
    if (model_is_nanochat(config)) config->long_window = smaller(long_window(config), T);
    config->sequence_length = T;
}
