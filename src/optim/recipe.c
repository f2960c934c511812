#include "optim/recipe.h"

#include <math.h>

static const double reference_batch = 1 << 19; /* tokens; the best for d12 */
static const float variance_decay = 0.9f;      /* Muon's beta2 */

Recipe recipe_derive(const RecipeInput *input) {
    double reference_tokens = input->ratio * (double)input->reference_parameters;
    Recipe recipe = {.target_tokens = (int64_t)(input->ratio * (double)input->parameters),
                     .batch_tokens = input->batch_tokens};
    double tokens = (double)recipe.target_tokens;
    if (!recipe.batch_tokens) {
        double best = reference_batch * pow(tokens / reference_tokens, 0.383);
        recipe.batch_tokens = (int64_t)exp2(rint(log2(best)));
    }
    double batch = sqrt((double)recipe.batch_tokens / reference_batch);
    double width = pow((double)input->dim / 768, -0.5);
    recipe.matrix_rate = input->matrix_rate * batch;
    recipe.unembedding_rate = input->unembedding_rate * batch * width;
    recipe.embedding_rate = input->embedding_rate * batch * width;
    recipe.value_embedding_rate = recipe.embedding_rate * 0.5;
    recipe.residual_rate = input->scalar_rate * batch * 0.01;
    recipe.input_rate = input->scalar_rate * batch;
    recipe.smear_rate = 0.2;
    recipe.weight_decay = input->weight_decay * batch * (reference_tokens / tokens);
    return recipe;
}

OptimizerSettings recipe_optimizer(const Recipe *recipe) {
    const double peak = recipe->matrix_rate;
    const struct {
        WeightRole role;
        double rate;
        float beta1, beta2, weight_decay;
    } rows[] = {{WEIGHT_HEAD, recipe->unembedding_rate, 0.8f, 0.96f, 0.01f},
                {WEIGHT_EMBEDDING, recipe->embedding_rate, 0.8f, 0.995f, 0.001f},
                {WEIGHT_VALUE_EMBEDDING, recipe->value_embedding_rate, 0.8f, 0.995f, 0.01f},
                {WEIGHT_RESIDUAL_SCALE, recipe->residual_rate, 0.8f, 0.95f, 0.05f},
                {WEIGHT_INPUT_SCALE, recipe->input_rate, 0.96f, 0.95f, 0},
                {WEIGHT_SMEAR_GATE, recipe->smear_rate, 0.8f, 0.95f, 0},
                {WEIGHT_SCALAR, recipe->smear_rate, 0.8f, 0.95f, 0}};
    OptimizerSettings settings = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        settings.groups[rows[i].role] = (OptimizerGroup){.rate = (float)(rows[i].rate / peak),
                                                         .beta1 = rows[i].beta1,
                                                         .beta2 = rows[i].beta2,
                                                         .epsilon = 1e-10f,
                                                         .weight_decay = rows[i].weight_decay};
    settings.groups[WEIGHT_MATRIX] = (OptimizerGroup){.muon = true,
                                                      .rate = 1,
                                                      .beta2 = variance_decay,
                                                      .weight_decay = (float)recipe->weight_decay};
    return settings;
}

OptimizerSettings optimizer_muon(const AdamwSettings *adamw, double adamw_rate,
                                 double matrix_rate) {
    OptimizerSettings settings = optimizer_adamw(adamw);
    for (int role = 0; role < WEIGHT_ROLES; role++)
        settings.groups[role].rate = (float)(adamw_rate / matrix_rate);
    settings.groups[WEIGHT_MATRIX] = (OptimizerGroup){
        .muon = true, .rate = 1, .beta2 = variance_decay, .weight_decay = adamw->weight_decay};
    return settings;
}
