#include <string.h>

#include "cmd/resolve.h"
#include "train/rows.h"

/* nanochat's model, trained by its own optimizer. */
static bool has_recipe(const TrainOptions *options, const ModelConfig *config) {
    return model_is_nanochat(config) && !strcmp(options->optimizer, "muon");
}

static void unless_given(double *value, double otherwise) {
    if (*value < 0) *value = otherwise;
}

static void unless_chosen(const char **choice, const char *otherwise) {
    if (!strcmp(*choice, "auto")) *choice = otherwise;
}

/* What would be ignored: better refused. config.yaml records defaults too, so those pass. */
static bool refuse_ignored(const TrainOptions *options, bool recipe, Error *error) {
    static const char only_recipe[] = "only with nanochat's recipe (--model d4 ... d34)",
                      only_muon[] = "only with --optimizer muon",
                      no_recipe[] = "only without nanochat's recipe, which has its own "
                                    "(take --optimizer adamw)";
    bool muon = !strcmp(options->optimizer, "muon");
    const struct {
        const char *name, *when;
        bool ignored;
        double value, otherwise;
    } rows[] = {
        {"matrix-lr", only_muon, !muon, options->matrix_lr, DEFAULT_MATRIX_LR},
        {"embedding-lr", only_recipe, !recipe, options->embedding_lr, DEFAULT_EMBEDDING_LR},
        {"unembedding-lr", only_recipe, !recipe, options->unembedding_lr, DEFAULT_UNEMBEDDING_LR},
        {"scalar-lr", only_recipe, !recipe, options->scalar_lr, DEFAULT_SCALAR_LR},
        {"recipe-ratio", only_recipe, !recipe, options->recipe_ratio, 0},
        {"beta1", no_recipe, recipe, options->beta1, DEFAULT_BETA1},
        {"beta2", no_recipe, recipe, options->beta2, DEFAULT_BETA2},
        {"epsilon", no_recipe, recipe, options->epsilon, DEFAULT_EPSILON}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].ignored && rows[i].value != rows[i].otherwise)
            return fail(error, "--%s %g has a meaning %s", rows[i].name, rows[i].value,
                        rows[i].when);
    return !recipe || options->lr < 0 ||
           fail(error,
                "--lr %g has no meaning in nanochat's recipe: give --matrix-lr, --embedding-lr, "
                "--unembedding-lr or --scalar-lr, or take --optimizer adamw",
                options->lr);
}

bool resolve_defaults(TrainOptions *options, const ModelConfig *config, Error *error) {
    const Rows rows = rows_of_architecture(config);
    unless_chosen(&options->optimizer, model_is_nanochat(config) ? "muon" : "adamw");
    bool recipe = has_recipe(options, config);
    if (!refuse_ignored(options, recipe, error)) return false;
    if (!recipe) unless_given(&options->lr, 6e-4);
    unless_chosen(&options->packing, packing_name(rows.packing));
    if (!option_given(options->table, "document-mask")) options->document_mask = rows.document_mask;
    unless_chosen(&options->schedule, recipe ? "wsd" : "cosine");
    unless_given(&options->lr_floor, recipe ? 0.05 : 0.1);
    unless_given(&options->cooldown, recipe ? 0.65 : 0.2);
    unless_given(&options->weight_decay, recipe ? 0.28 : 0.1);
    unless_given(&options->clip, recipe ? 0 : 1);
    if (recipe && options->warmup < 0) options->warmup = 40;
    return true;
}

/* The rates were tuned for d12 with the same heads and vocabulary. */
static int64_t reference_parameters(const ModelConfig *config) {
    ModelConfig reference = model_config_nanochat(12, config->head_dim);
    reference.vocab = config->vocab;
    return model_scaling_parameters(&reference);
}

bool resolve_recipe(const TrainOptions *options, int64_t batch_tokens, TrainSettings *settings,
                    Error *error) {
    const ModelConfig *config = &settings->model;
    if (!has_recipe(options, config)) return true;
    double ratio = options->tokens_per_param > 0 ? options->tokens_per_param : 12;
    if (options->recipe_ratio > 0) ratio = options->recipe_ratio;
    RecipeInput input = {.parameters = model_scaling_parameters(config),
                         .reference_parameters = reference_parameters(config),
                         .dim = config->dim,
                         .ratio = ratio,
                         .batch_tokens = batch_tokens,
                         .matrix_rate = options->matrix_lr,
                         .embedding_rate = options->embedding_lr,
                         .unembedding_rate = options->unembedding_lr,
                         .scalar_rate = options->scalar_lr,
                         .weight_decay = options->weight_decay};
    if (ratio * (double)input.parameters < 1)
        return fail(error, "--recipe-ratio %g leaves not one token to train on", ratio);
    settings->recipe = recipe_derive(&input);
    settings->recipe_ratio = ratio;
    return true;
}

static AdamwSettings adamw_settings(const TrainOptions *options) {
    return (AdamwSettings){.beta1 = (float)options->beta1,
                           .beta2 = (float)options->beta2,
                           .epsilon = (float)options->epsilon,
                           .weight_decay = (float)options->weight_decay,
                           .clip_norm = (float)options->clip};
}

void resolve_optimizer(const TrainOptions *options, TrainSettings *settings) {
    const AdamwSettings adamw = adamw_settings(options);
    double peak = options->lr;
    if (settings_have_recipe(settings)) {
        settings->optimizer = recipe_optimizer(&settings->recipe);
        settings->optimizer.clip_norm = adamw.clip_norm;
        peak = settings->recipe.matrix_rate;
    } else if (!strcmp(options->optimizer, "muon")) {
        settings->optimizer = optimizer_muon(&adamw, options->lr, options->matrix_lr);
        peak = options->matrix_lr;
    } else {
        settings->optimizer = optimizer_adamw(&adamw);
    }
    int64_t warmup = options->warmup;
    if (warmup < 0) warmup = settings->steps / 20 < 500 ? settings->steps / 20 : 500;
    settings->schedule =
        (Schedule){.shape = (ScheduleShape)(option_choice(options->table, "schedule") - 1),
                   .peak = peak,
                   .floor = options->lr_floor,
                   .cooldown = options->cooldown,
                   .warmup = warmup,
                   .steps = settings->steps};
}
