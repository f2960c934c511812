#include "cmd/recipe_report.h"

#include <stdio.h>

typedef struct Rate {
    const char *key, *name;
    double value;
} Rate;

enum { RATES = 7 };

static void list_rates(const Recipe *recipe, Rate rates[RATES]) {
    const Rate all[RATES] = {{"matrices", "matrices (Muon)", recipe->matrix_rate},
                             {"wte", "embedding", recipe->embedding_rate},
                             {"value_embeds", "value embeddings", recipe->value_embedding_rate},
                             {"lm_head", "head", recipe->unembedding_rate},
                             {"resid_lambdas", "residual scales", recipe->residual_rate},
                             {"x0_lambdas", "input scales", recipe->input_rate},
                             {"smear", "smear and back-out", recipe->smear_rate}};
    for (int i = 0; i < RATES; i++) rates[i] = all[i];
}

static const char *with_commas(char text[32], int64_t number) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number), used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = 0;
    return text;
}

static void print_count(const char *name, int64_t count) {
    char text[32];
    printf("  %-32s %16s\n", name, with_commas(text, count));
}

void recipe_print(const TrainSettings *settings) {
    const Recipe *recipe = &settings->recipe;
    ModelCounts counts = model_counts(&settings->model);
    Rate rates[RATES];
    list_rates(recipe, rates);
    printf("nanochat's recipe at %g tokens for each scaling parameter:\n", settings->recipe_ratio);
    print_count("embedding (wte)", counts.wte);
    print_count("value embeddings", counts.value_embeds);
    print_count("head (lm_head)", counts.lm_head);
    print_count("matrices of layers", counts.transformer_matrices);
    print_count("scalars", counts.scalars);
    print_count("parameters in all", counts.total);
    print_count("scaling parameters", model_scaling_parameters(&settings->model));
    print_count("FLOPs per token", (int64_t)model_flops_per_token(&settings->model));
    print_count("batch, in tokens", settings->batch_tokens);
    print_count("steps", settings->steps);
    print_count("tokens", settings->steps * settings->batch_tokens);
    for (int i = 0; i < RATES; i++)
        printf("  learning rate, %-17s %16.9g\n", rates[i].name, rates[i].value);
    printf("  %-32s %16.9g\n", "weight decay (Muon)", recipe->weight_decay);
}

void recipe_add_json(const TrainSettings *settings, json_t *json) {
    const Recipe *recipe = &settings->recipe;
    ModelCounts counts = model_counts(&settings->model);
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"wte", counts.wte},         {"value_embeds", counts.value_embeds},
        {"lm_head", counts.lm_head}, {"transformer_matrices", counts.transformer_matrices},
        {"scalars", counts.scalars}, {"total", counts.total}};
    json_t *groups = json_object(), *all_rates = json_object();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(groups, numbers[i].key, json_integer(numbers[i].value));
    Rate rates[RATES];
    list_rates(recipe, rates);
    for (int i = 0; i < RATES; i++)
        json_object_set_new(all_rates, rates[i].key, json_real(rates[i].value));
    json_object_set_new(json, "recipe", json_string("nanochat"));
    json_object_set_new(json, "recipe_ratio", json_real(settings->recipe_ratio));
    json_object_set_new(json, "parameter_counts", groups);
    json_object_set_new(json, "learning_rates", all_rates);
    json_object_set_new(json, "weight_decay", json_real(recipe->weight_decay));
}
