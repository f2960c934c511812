#include "cmd/train_options.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "cmd/resolve.h"
#include "train/checkpoint.h"

void train_options_init(TrainOptions *options) {
    *options = (TrainOptions){.model = "llama-15m",
                              .packing = "auto",
                              .optimizer = "auto",
                              .precision = "bf16",
                              .recompute = "auto",
                              .offload = "auto",
                              .optimizer_state = "auto",
                              .device = "this",
                              .seed = 1,
                              .schedule = "auto",
                              .lr = -1,
                              .matrix_lr = DEFAULT_MATRIX_LR,
                              .embedding_lr = DEFAULT_EMBEDDING_LR,
                              .unembedding_lr = DEFAULT_UNEMBEDDING_LR,
                              .scalar_lr = DEFAULT_SCALAR_LR,
                              .lr_floor = -1,
                              .cooldown = -1,
                              .beta1 = DEFAULT_BETA1,
                              .beta2 = DEFAULT_BETA2,
                              .epsilon = DEFAULT_EPSILON,
                              .weight_decay = -1,
                              .clip = -1,
                              .warmup = -1,
                              .keep = 3,
                              .checkpoint_interval = 1800,
                              .eval_every = 1000,
                              .eval_tokens = 262144,
                              .core_max_per_task = 500,
                              .sample_tokens = 64,
                              .sample_prompt = "The"};
    TrainOptions *o = options;
    /* Numbers end where products of them could leave 64 bits. */
    const Option table[] = {
        {"model", OPTION_TEXT, &o->model, "NAME",
         "preset (d4 ... d34: nanochat's; llama-15m ... llama-977m) or a config.json"},
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
        {"packing", OPTION_CHOICE, &o->packing, NULL,
         "how documents fill sequences (bestfit for nanochat's models, else stream)", 0, 0,
         "auto|stream|documents|bestfit"},
        {"document-mask", OPTION_FLAG, &o->document_mask, NULL,
         "keep attention inside documents (on, but for nanochat's models)"},
        {"run-dir", OPTION_TEXT, &o->run_directory, "DIR", "where config, log and checkpoints go"},
        {"resume", OPTION_FLAG, &o->resume, NULL,
         "go on from the run's latest checkpoint, with the options in its config.yaml where none "
         "are given"},
        {"init-from", OPTION_TEXT, &o->init_from, "DIR",
         "start from the weights of this checkpoint (or run, its latest), and its model"},

        {"steps", OPTION_COUNT, &o->steps, "N", "horizon: optimizer steps", 1, 9e18},
        {"tokens", OPTION_COUNT, &o->tokens, "N", "horizon: tokens, such as 2.5B", 1, 9e18},
        {"tokens-per-param", OPTION_NUMBER, &o->tokens_per_param, "X",
         "horizon: tokens for each parameter but the embeddings' (20 when no horizon is given; 12 "
         "with "
         "nanochat's recipe)",
         1e-9, 1e9},
        {"flops", OPTION_NUMBER, &o->flops, "X", "horizon: training FLOPs, such as 1e18", 1, 1e30},
        {"batch-tokens", OPTION_COUNT, &o->batch_tokens, "N",
         "tokens of an optimizer step (about 32K; nanochat's recipe has its own)", 1, 0x1p32},
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

        {"optimizer", OPTION_CHOICE, &o->optimizer, NULL,
         "muon: for the matrices of layers, beside AdamW for the rest; nanochat's recipe with its "
         "models",
         0, 0, "auto|adamw|muon"},
        {"lr", OPTION_NUMBER, &o->lr, "X", "AdamW's peak learning rate (6e-4)", 1e-30, 1e38},
        {"matrix-lr", OPTION_NUMBER, &o->matrix_lr, "X", "Muon's peak learning rate", 1e-12, 1e6},
        {"embedding-lr", OPTION_NUMBER, &o->embedding_lr, "X",
         "nanochat's recipe, before it is scaled: embeddings", 0, 1e6},
        {"unembedding-lr", OPTION_NUMBER, &o->unembedding_lr, "X", "its head", 0, 1e6},
        {"scalar-lr", OPTION_NUMBER, &o->scalar_lr, "X", "its scalars", 0, 1e6},
        {"recipe-ratio", OPTION_NUMBER, &o->recipe_ratio, "X",
         "tokens for each parameter that its batch, rates and decay are made for "
         "(--tokens-per-param, else 12)",
         1e-9, 1e9},
        {"warmup", OPTION_COUNT, &o->warmup, "N",
         "steps of linear rise (5% of all, at most 500; 40 with nanochat's recipe)"},
        {"schedule", OPTION_CHOICE, &o->schedule, NULL,
         "after the warm-up (cosine; wsd with nanochat's recipe)", 0, 0, "auto|cosine|linear|wsd"},
        {"lr-floor", OPTION_NUMBER, &o->lr_floor, "X",
         "share of the peak that is left at the end (0.1; 0.05 with nanochat's recipe)", 0, 1},
        {"cooldown", OPTION_NUMBER, &o->cooldown, "X",
         "wsd: share of the steps that cool down (0.2; 0.65 with nanochat's recipe)", 0, 1},
        {"beta1", OPTION_NUMBER, &o->beta1, "X", "AdamW's; nanochat's recipe has its own", 0,
         0.999999},
        {"beta2", OPTION_NUMBER, &o->beta2, "X", "likewise", 0, 0.999999},
        {"epsilon", OPTION_NUMBER, &o->epsilon, "X", "likewise", 1e-30, 1},
        {"weight-decay", OPTION_NUMBER, &o->weight_decay, "X",
         "of matrices (0.1; 0.28, scaled, with nanochat's recipe)"},
        {"clip", OPTION_NUMBER, &o->clip, "X",
         "largest norm of the gradient; 0: not clipped (1; 0 with nanochat's recipe)"},

        {"checkpoint-every", OPTION_COUNT, &o->checkpoint_every, "N", "steps between checkpoints"},
        {"checkpoint-interval", OPTION_DURATION, &o->checkpoint_interval, "TIME",
         "and after so long (0: not)"},
        {"keep", OPTION_INTEGER, &o->keep, "N", "checkpoints to keep (0: all)"},
        {"stop-after", OPTION_COUNT, &o->stop_after, "N", "stop after N steps of this invocation"},
        {"eval-every", OPTION_COUNT, &o->eval_every, "N",
         "steps between evaluations, and one at the end (0: none)"},
        {"eval-tokens", OPTION_COUNT, &o->eval_tokens, "N", "tokens of an evaluation (0: all)"},
        {"core", OPTION_TEXT, &o->core, "DIR", "eval bundle of the CORE metric"},
        {"core-every", OPTION_COUNT, &o->core_every, "N",
         "steps between evaluations of CORE, and one at the end"},
        {"core-max-per-task", OPTION_COUNT, &o->core_max_per_task, "N",
         "examples of each of its tasks (0: all)"},
        {"sample-every", OPTION_COUNT, &o->sample_every, "N",
         "steps between samples, and one at the end (0: none)"},
        {"sample-tokens", OPTION_INTEGER, &o->sample_tokens, "N", "tokens of a sample"},
        {"sample-prompt", OPTION_TEXT, &o->sample_prompt, "TEXT", "what a sample begins with"},
    };
    _Static_assert(sizeof table / sizeof *table < TRAIN_OPTIONS_MOST,
                   "the table must end with an empty row");
    memcpy(o->table, table, sizeof table);
}

/* The path from the root; a name of nothing on disk stays as it is. */
static bool make_absolute(const char **path, Error *error) {
    char absolute[PATH_MAX];
    return !*path || !realpath(*path, absolute) || (*path = text_keep(absolute, error));
}

bool train_options_make_absolute(TrainOptions *options, Error *error) {
    ModelConfig preset;
    return make_absolute(&options->data, error) && make_absolute(&options->init_from, error) &&
           make_absolute(&options->core, error) &&
           (model_preset(&preset, options->model) || make_absolute(&options->model, error));
}

/* ---- The batch and the horizon ---- */

enum { BATCH_TOKENS = 32768 };

static bool resolve_batch(TrainOptions *options, TrainSettings *settings, Error *error) {
    int64_t T = settings->model.sequence_length, batch = options->batch_tokens;
    if (!batch) {
        int64_t aim = settings_have_recipe(settings) ? settings->recipe.batch_tokens : BATCH_TOKENS;
        int64_t rows = aim / T > 0 ? aim / T : 1;
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
    double tokens =
        settings_have_recipe(settings) ? (double)settings->recipe.target_tokens : 20 * parameters;
    if (options->tokens > 0) tokens = (double)options->tokens;
    if (options->tokens_per_param > 0) tokens = floor(options->tokens_per_param * parameters);
    if (options->flops > 0) tokens = options->flops / model_flops_per_token(&settings->model);
    double steps = (double)options->steps;
    double whole = tokens / (double)settings->batch_tokens;
    bool nearest = settings_have_recipe(settings) && options->flops > 0; /* as nanochat does */
    if (!options->steps) steps = fmax(1, nearest ? rint(whole) : floor(whole));
    if (steps > CHECKPOINT_STEP_MAX)
        return fail(error,
                    "the horizon is %.3g steps, and a run has at most %d: give a shorter one, or "
                    "more --batch-tokens",
                    steps, CHECKPOINT_STEP_MAX);
    settings->steps = (int64_t)steps;
    return true;
}

/* ---- The rest ---- */

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
    options->recipe_ratio = settings->recipe_ratio;
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
        .run_directory = options->run_directory,
        .resume = options->resume,
        .stop_after = options->stop_after,
        .checkpoint_every = options->checkpoint_every,
        .checkpoint_seconds = options->checkpoint_interval,
        .keep = options->keep,
        .eval_every = options->eval_every,
        .eval_tokens = options->eval_tokens,
        .core_every = options->core_every,
        .sample_every = options->sample_every,
        .sample_tokens = options->sample_tokens,
        .sample_prompt = options->sample_prompt,
    };
    if (!resolve_model(options, vocab, &settings->model, error) ||
        !resolve_defaults(options, &settings->model, error) ||
        !resolve_recipe(options, options->batch_tokens, settings, error) ||
        !resolve_batch(options, settings, error) ||
        /* Again, for the batch in whole rows, which is what a resumed run finds in config.yaml. */
        !resolve_recipe(options, settings->batch_tokens, settings, error) ||
        !resolve_horizon(options, settings, error))
        return false;
    /* What the steps above may have changed in the options. */
    settings->packing = (Packing)(option_choice(options->table, "packing") - 1);
    settings->document_mask = options->document_mask;
    settings->init_from = options->init_from;
    resolve_optimizer(options, settings);
    record_resolved(options, settings);
    return true;
}
