#include <string.h>

#include "base/file.h"
#include "cmd/checkpoint_path.h"
#include "cmd/resolve.h"

static void override(int64_t given, int64_t *value) {
    if (given > 0) *value = given;
}

/* nanochat's width follows from the depth that the preset names, in whole heads; its heads from its width. */
static bool resolve_nanochat_heads(const TrainOptions *options, int64_t depth, ModelConfig *config,
                                   Error *error) {
    bool sized = options->head_dim > 0, wide = options->dim > 0;
    override(options->head_dim, &config->head_dim);
    if (sized && !wide) config->dim = model_config_nanochat(depth, config->head_dim).dim;
    if (options->heads > 0) {
        config->heads = config->kv_heads = options->heads;
        if (!sized) config->head_dim = config->dim / config->heads;
    } else if (sized || wide) {
        config->heads = config->kv_heads = config->dim / config->head_dim;
        if (config->dim % config->head_dim)
            return fail(error,
                        "--dim %lld is not whole heads of nanochat, which are %lld wide: give "
                        "--head-dim a divisor of it, or --dim a multiple of %lld",
                        (long long)config->dim, (long long)config->head_dim,
                        (long long)config->head_dim);
    }
    override(options->kv_heads, &config->kv_heads);
    config->ffn = 4 * config->dim;
    return true;
}

static bool resolve_heads(const TrainOptions *options, ModelConfig *config, Error *error) {
    override(options->heads, &config->heads);
    if (options->heads > 0) config->kv_heads = config->heads;
    override(options->kv_heads, &config->kv_heads);
    if (options->head_dim > 0) {
        config->head_dim = options->head_dim;
    } else if (options->dim > 0 || options->heads > 0) {
        if (config->dim % config->heads)
            return fail(
                error,
                "--dim %lld is not divisible by --heads %lld; the nearest dims are %lld and %lld",
                (long long)config->dim, (long long)config->heads,
                (long long)(config->dim / config->heads * config->heads),
                (long long)((config->dim / config->heads + 1) * config->heads));
        config->head_dim = config->dim / config->heads;
    }
    return true;
}

static bool resolve_vocab(const TrainOptions *options, int64_t tokenizer_vocab, ModelConfig *config,
                          Error *error) {
    if (options->vocab > 0) config->vocab = options->vocab;
    if (!config->vocab) /* a preset leaves it open; a config.json, padded or not, does not */
        config->vocab = tokenizer_vocab ? tokenizer_vocab : model_preset_vocab(options->model);
    if (config->vocab < tokenizer_vocab)
        return fail(error, "a vocabulary of %lld (--vocab) is smaller than the dataset's of %lld",
                    (long long)config->vocab, (long long)tokenizer_vocab);
    return true;
}

/* Special ids of a config.json that belong to a larger vocabulary than this run's mean nothing here. */
static void drop_foreign_ids(ModelConfig *config) {
    if (config->bos_id >= config->vocab) config->bos_id = -1;
    if (config->eos_id >= config->vocab) config->eos_id = -1;
}

/* Weights to start from are those of a checkpoint, and of its model. A resumed run has its own. */
static bool resolve_init_from(TrainOptions *options, Error *error) {
    if (!options->init_from || options->resume) return true;
    options->init_from = checkpoint_path(options->init_from, error);
    if (!option_given(options->table, "model")) options->model = options->init_from;
    return options->init_from != NULL;
}

static bool refuse_directory(const char *name, Error *error) {
    if (path_is_run(name))
        return fail(error,
                    "--model %s is a run: --init-from %s takes its model and its weights, and "
                    "--run-dir %s --resume goes on with it",
                    name, name, name);
    return fail(error,
                "--model %s is no model (it has no config.json): give a preset (d4 ... d34, "
                "llama-15m ... llama-977m), a config.json, or a directory with one",
                name);
}

/* A model that a run took from elsewhere may be gone by now; the run's checkpoints are of the same. */
static bool load_model(const TrainOptions *options, ModelConfig *config, Error *error) {
    const char *name = options->model;
    if (model_preset(config, name)) return true;
    if (options->resume && !path_exists(name))
        name = checkpoint_path(options->run_directory, error);
    if (!name) return false;
    if (path_is_directory(name) && !path_is_model(name)) return refuse_directory(name, error);
    return model_config_load(config, name, error);
}

bool resolve_model(TrainOptions *options, uint32_t vocab, ModelConfig *config, Error *error) {
    if (!resolve_init_from(options, error) || !load_model(options, config, error)) return false;
    bool nanochat = model_is_nanochat(config);
    int64_t depth = config->layers;
    override(options->layers, &config->layers);
    override(options->dim, &config->dim);
    override(options->sequence_length, &config->sequence_length);
    if (nanochat && !resolve_nanochat_heads(options, depth, config, error)) return false;
    if (!nanochat && options->dim > 0 && options->ffn <= 0)
        config->ffn =
            (config->dim * 8 / 3 + 31) / 32 * 32; /* SwiGLU of the same size as a 4x MLP */
    override(options->ffn, &config->ffn);
    override(options->window, &config->window);
    if (options->rope_theta > 0) config->rope_theta = options->rope_theta;
    if (option_given(options->table, "tie-embeddings")) config->tied = options->tied;
    if (options->window_pattern) {
        size_t length = strlen(options->window_pattern);
        if (!length || length >= WINDOW_PATTERN_MAX ||
            strspn(options->window_pattern, "SL") != length)
            return fail(error, "--window-pattern '%s' must be 1 to %d letters S or L",
                        options->window_pattern, WINDOW_PATTERN_MAX - 1);
        memcpy(config->window_pattern, options->window_pattern, length + 1);
    }
    if ((!nanochat && !resolve_heads(options, config, error)) ||
        !resolve_vocab(options, vocab, config, error))
        return false;
    drop_foreign_ids(config);
    return model_config_check(config, error);
}
