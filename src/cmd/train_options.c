#include "cmd/train_options.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "train/checkpoint.h"

void train_options_init(TrainOptions *options) {
    *options = (TrainOptions){.model = "llama-15m",
                              .packing = "stream",
                              .document_mask = true,
                              .precision = "bf16",
                              .recompute = "auto",
                              .offload = "auto",
                              .optimizer_state = "auto",
                              .device = "this",
                              .seed = 1,
                              .schedule = "cosine",
                              .lr = 6e-4,
                              .lr_floor = 0.1,
                              .cooldown = 0.2,
                              .beta1 = 0.9,
                              .beta2 = 0.95,
                              .epsilon = 1e-8,
                              .weight_decay = 0.1,
                              .clip = 1,
                              .warmup = -1,
                              .keep = 3,
                              .checkpoint_interval = 1800,
                              .eval_every = 1000,
                              .eval_tokens = 262144,
                              .sample_tokens = 64,
                              .sample_prompt = "The"};
    TrainOptions *o = options;
    /* Numbers end where products of them could leave 64 bits. */
    const Option table[] = {
        {"model", OPTION_TEXT, &o->model, "NAME",
         "preset (llama-15m ... llama-977m) or a config.json"},
        {"layers", OPTION_INTEGER, &o->layers, "N", "override the model's layers", 1, 4096},
        {"dim", OPTION_INTEGER, &o->dim, "N", "override its width", 1, 1 << 20},
        {"heads", OPTION_INTEGER, &o->heads, "N", "override its query heads", 1, 1 << 16},
        {"kv-heads", OPTION_INTEGER, &o->kv_heads, "N", "override its key/value heads", 1, 1 << 16},
        {"head-dim", OPTION_INTEGER, &o->head_dim, "N", "override the size of a head (dim / heads)",
         1, 1 << 20},
        {"ffn", OPTION_INTEGER, &o->ffn, "N", "override the width of its MLP", 1, 1 << 22},
        {"seq-len", OPTION_COUNT, &o->sequence_length, "N", "tokens of a sequence", 1, 1 << 24},
        {"vocab", OPTION_COUNT, &o->vocab, "N", "vocabulary, when it should exceed the tokenizer's",
         1, INT32_MAX},
        {"window-pattern", OPTION_TEXT, &o->window_pattern, "SL..",
         "a letter for each layer, repeated: S sees --window, L everything"},
        {"window", OPTION_COUNT, &o->window, "N",
         "keys behind the query that an S layer sees (T/4)", 0, 1 << 24},
        {"rope-theta", OPTION_NUMBER, &o->rope_theta, "X", "base of the rotary embedding"},
        {"tie-embeddings", OPTION_FLAG, &o->tied, NULL,
         "share the head's weights with the embedding"},

        {"data", OPTION_TEXT, &o->data, "DIR",
         "dataset made by 'hearth data build', or llm.c shards"},
        {"packing", OPTION_CHOICE, &o->packing, NULL, "how documents fill sequences", 0, 0,
         "stream|documents|bestfit"},
        {"document-mask", OPTION_FLAG, &o->document_mask, NULL, "keep attention inside documents"},
        {"run-dir", OPTION_TEXT, &o->run_directory, "DIR", "where config, log and checkpoints go"},
        {"resume", OPTION_FLAG, &o->resume, NULL,
         "go on from the run's latest checkpoint, with the options in its config.yaml"},
        {"init-from", OPTION_TEXT, &o->init_from, "DIR",
         "start from the weights of this checkpoint"},

        {"steps", OPTION_COUNT, &o->steps, "N", "horizon: optimizer steps", 1, 9e18},
        {"tokens", OPTION_COUNT, &o->tokens, "N", "horizon: tokens, such as 2.5B", 1, 9e18},
        {"tokens-per-param", OPTION_NUMBER, &o->tokens_per_param, "X",
         "horizon: tokens for each parameter but the embedding's (20 when no horizon is given)",
         1e-9, 1e9},
        {"flops", OPTION_NUMBER, &o->flops, "X", "horizon: training FLOPs, such as 1e18", 1, 1e30},
        {"batch-tokens", OPTION_COUNT, &o->batch_tokens, "N",
         "tokens of an optimizer step (about 32K)", 1, 0x1p32},
        {"micro-batch", OPTION_INTEGER, &o->micro_batch, "N",
         "sequences at a time (the planner chooses)", 1, 1 << 24},
        {"recompute", OPTION_CHOICE, &o->recompute, NULL, "what the backward pass computes again",
         0, 0, "auto|none|cheap|mlp|layer"},
        {"offload", OPTION_CHOICE, &o->offload, NULL,
         "what waits in host memory, copied while the GPU computes", 0, 0,
         "auto|none|state|activations|all"},
        {"logit-chunk", OPTION_COUNT, &o->logit_chunk, "N",
         "tokens whose logits are held at a time", 1, 1 << 24},
        {"optimizer-state", OPTION_CHOICE, &o->optimizer_state, NULL, "format of the moments", 0, 0,
         "auto|fp32|bf16|8bit"},
        {"memory", OPTION_BYTES, &o->memory, "N",
         "what the process may take, such as 16G (85% of all)"},
        {"precision", OPTION_CHOICE, &o->precision, NULL, "precision recipe", 0, 0, "bf16|fp32"},
        {"device", OPTION_TEXT, &o->device, "NAME",
         "cpu, cuda, or this: the GPU where one can be used, else the CPU"},
        {"threads", OPTION_INTEGER, &o->threads, "N", "processor threads (all)", 1, 1024},
        {"seed", OPTION_INTEGER, &o->seed, "N", "of initial weights, data order and sampling", 0,
         1e15},

        {"lr", OPTION_NUMBER, &o->lr, "X", "peak learning rate"},
        {"warmup", OPTION_COUNT, &o->warmup, "N", "steps of linear rise (5% of all, at most 500)"},
        {"schedule", OPTION_CHOICE, &o->schedule, NULL, "after the warm-up", 0, 0,
         "cosine|linear|wsd"},
        {"lr-floor", OPTION_NUMBER, &o->lr_floor, "X", "share of the peak that is left at the end",
         0, 1},
        {"cooldown", OPTION_NUMBER, &o->cooldown, "X", "wsd: share of the steps that cool down", 0,
         1},
        {"beta1", OPTION_NUMBER, &o->beta1, "X", "AdamW", 0, 0.999999},
        {"beta2", OPTION_NUMBER, &o->beta2, "X", "AdamW", 0, 0.999999},
        {"epsilon", OPTION_NUMBER, &o->epsilon, "X", "AdamW", 1e-30, 1},
        {"weight-decay", OPTION_NUMBER, &o->weight_decay, "X", "AdamW, of matrices"},
        {"clip", OPTION_NUMBER, &o->clip, "X", "largest norm of the gradient; 0: not clipped"},

        {"checkpoint-every", OPTION_COUNT, &o->checkpoint_every, "N", "steps between checkpoints"},
        {"checkpoint-interval", OPTION_DURATION, &o->checkpoint_interval, "TIME",
         "and after so long (0: not)"},
        {"keep", OPTION_INTEGER, &o->keep, "N", "checkpoints to keep (0: all)"},
        {"stop-after", OPTION_COUNT, &o->stop_after, "N", "stop after N steps of this invocation"},
        {"eval-every", OPTION_COUNT, &o->eval_every, "N",
         "steps between evaluations, and one at the end (0: none)"},
        {"eval-tokens", OPTION_COUNT, &o->eval_tokens, "N", "tokens of an evaluation (0: all)"},
        {"sample-every", OPTION_COUNT, &o->sample_every, "N",
         "steps between samples, and one at the end (0: none)"},
        {"sample-tokens", OPTION_INTEGER, &o->sample_tokens, "N", "tokens of a sample"},
        {"sample-prompt", OPTION_TEXT, &o->sample_prompt, "TEXT", "what a sample begins with"},
    };
    _Static_assert(sizeof table / sizeof *table < TRAIN_OPTIONS_MOST,
                   "the table must end with an empty row");
    memcpy(o->table, table, sizeof table);
}

/* ---- The model ---- */

static void override(int64_t given, int64_t *value) {
    if (given > 0) *value = given;
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

static bool resolve_model(TrainOptions *options, uint32_t vocab, ModelConfig *config,
                          Error *error) {
    if (!model_config_load(config, options->model, error)) return false;
    override(options->layers, &config->layers);
    override(options->dim, &config->dim);
    override(options->sequence_length, &config->sequence_length);
    if (options->dim > 0 && options->ffn <= 0)
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
    if (!resolve_heads(options, config, error) || !resolve_vocab(options, vocab, config, error))
        return false;
    drop_foreign_ids(config);
    return model_config_check(config, error);
}

/* ---- The batch and the horizon ---- */

enum { BATCH_TOKENS = 32768 };

static bool resolve_batch(TrainOptions *options, TrainSettings *settings, Error *error) {
    int64_t T = settings->model.sequence_length, batch = options->batch_tokens;
    if (!batch) {
        int64_t rows = BATCH_TOKENS / T > 0 ? BATCH_TOKENS / T : 1;
        if (options->micro_batch > 0) /* whole micro-batches, at least one */
            rows = (rows < options->micro_batch ? 1 : rows / options->micro_batch) *
                   options->micro_batch;
        batch = rows * T;
    }
    if (batch % T || batch < T)
        return fail(
            error,
            "--batch-tokens %lld is not a multiple of --seq-len %lld; the nearest are %lld and "
            "%lld",
            (long long)batch, (long long)T, (long long)(batch / T > 0 ? batch / T * T : T),
            (long long)((batch / T + 1) * T));
    int64_t rows = batch / T, micro_batch = options->micro_batch;
    if (micro_batch > 0 && rows % micro_batch) {
        int64_t less = rows / micro_batch * micro_batch, more = less + micro_batch;
        return fail(
            error,
            "--batch-tokens %lld is %lld sequences of %lld, which --micro-batch %lld does not "
            "divide; --batch-tokens %lld or %lld would do",
            (long long)batch, (long long)rows, (long long)T, (long long)micro_batch,
            (long long)((less ? less : more) * T), (long long)(more * T));
    }
    settings->batch_tokens = batch;
    return true;
}

static bool resolve_horizon(TrainOptions *options, TrainSettings *settings, Error *error) {
    int given = (options->steps > 0) + (options->tokens > 0) + (options->tokens_per_param > 0) +
                (options->flops > 0);
    if (given > 1)
        return fail(error, "give one horizon: --steps, --tokens, --tokens-per-param or --flops");
    double parameters = (double)model_scaling_parameters(&settings->model);
    double tokens = 20 * parameters;
    if (options->tokens > 0) tokens = (double)options->tokens;
    if (options->tokens_per_param > 0) tokens = options->tokens_per_param * parameters;
    if (options->flops > 0) tokens = options->flops / model_flops_per_token(&settings->model);
    double steps = (double)options->steps;
    if (!options->steps) steps = fmax(1, floor(tokens / (double)settings->batch_tokens));
    if (steps > CHECKPOINT_STEP_MAX)
        return fail(error,
                    "the horizon is %.3g steps, and a run has at most %d: give a shorter one, or "
                    "more --batch-tokens",
                    steps, CHECKPOINT_STEP_MAX);
    settings->steps = (int64_t)steps;
    return true;
}

/* ---- The rest ---- */

static void resolve_optimizer(const TrainOptions *options, TrainSettings *settings) {
    settings->optimizer =
        optimizer_adamw(&(AdamwSettings){.beta1 = (float)options->beta1,
                                         .beta2 = (float)options->beta2,
                                         .epsilon = (float)options->epsilon,
                                         .weight_decay = (float)options->weight_decay,
                                         .clip_norm = (float)options->clip});
    int64_t warmup = options->warmup;
    if (warmup < 0) warmup = settings->steps / 20 < 500 ? settings->steps / 20 : 500;
    settings->schedule =
        (Schedule){.shape = (ScheduleShape)option_choice(options->table, "schedule"),
                   .peak = options->lr,
                   .floor = options->lr_floor,
                   .cooldown = options->cooldown,
                   .warmup = warmup,
                   .steps = settings->steps};
}

/* config.yaml holds what was decided, so that a resumed run decides nothing anew. */
static void record_resolved(TrainOptions *options, const TrainSettings *settings) {
    const ModelConfig *config = &settings->model;
    options->layers = config->layers, options->dim = config->dim;
    options->heads = config->heads, options->kv_heads = config->kv_heads;
    options->head_dim = config->head_dim, options->ffn = config->ffn;
    options->sequence_length = config->sequence_length, options->vocab = config->vocab;
    options->window = config->window, options->window_pattern = config->window_pattern;
    options->rope_theta = config->rope_theta, options->tied = config->tied;
    options->steps = settings->steps, options->tokens = 0;
    options->tokens_per_param = options->flops = 0;
    options->batch_tokens = settings->batch_tokens;
    options->warmup = settings->schedule.warmup;
}

bool train_options_resolve(TrainOptions *options, uint32_t vocab, TrainSettings *settings,
                           Error *error) {
    if (options->threads > 0) thread_count_set((int)options->threads);
    *settings = (TrainSettings){
        .storage = strcmp(options->precision, "fp32") ? DTYPE_BF16 : DTYPE_F32,
        .seed = (uint64_t)options->seed,
        .micro_batch = options->micro_batch,
        .logit_chunk = options->logit_chunk,
        .recompute = option_choice(options->table, "recompute") - 1,
        .offload = option_choice(options->table, "offload") - 1,
        .optimizer_state = option_choice(options->table, "optimizer-state") - 1,
        .memory = options->memory,
        .data = options->data,
        .packing = (Packing)option_choice(options->table, "packing"),
        .document_mask = options->document_mask,
        .run_directory = options->run_directory,
        .init_from = options->init_from,
        .resume = options->resume,
        .stop_after = options->stop_after,
        .checkpoint_every = options->checkpoint_every,
        .checkpoint_seconds = options->checkpoint_interval,
        .keep = options->keep,
        .eval_every = options->eval_every,
        .eval_tokens = options->eval_tokens,
        .sample_every = options->sample_every,
        .sample_tokens = options->sample_tokens,
        .sample_prompt = options->sample_prompt,
    };
    if (!resolve_model(options, vocab, &settings->model, error) ||
        !resolve_batch(options, settings, error) || !resolve_horizon(options, settings, error))
        return false;
    resolve_optimizer(options, settings);
    record_resolved(options, settings);
    return true;
}
