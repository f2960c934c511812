/* nanochat's recipe: the batch, the learning rates and the weight decay that follow from a model's size and
 * from the tokens it is trained on (snapshot of July 2026). */
#ifndef HEARTH_OPTIM_RECIPE_H
#define HEARTH_OPTIM_RECIPE_H

#include "optim/optimizer.h"

typedef struct RecipeInput {
    int64_t parameters;           /* that count for scaling: blocks and head */
    int64_t reference_parameters; /* those of d12, for which the rates were tuned */
    int64_t dim;
    double ratio;         /* tokens for each of the parameters */
    int64_t batch_tokens; /* 0 = what the recipe has */
    /* At the reference: d12 and a batch of 2^19 tokens. */
    double matrix_rate, embedding_rate, unembedding_rate, scalar_rate, weight_decay;
} RecipeInput;

/* Rates are peaks, before the schedule; those of embeddings and head are AdamW's. */
typedef struct Recipe {
    int64_t target_tokens, batch_tokens;
    double matrix_rate, unembedding_rate, embedding_rate, value_embedding_rate;
    double residual_rate, input_rate, smear_rate;
    double weight_decay; /* Muon's, before its schedule */
} Recipe;

/* The batch grows with the tokens to the power of 0.383 (arXiv 2505.13738), as the nearest power of two;
 * rates with the root of the batch; the decay keeps batch / (rate * decay * tokens) constant (2405.13698). */
Recipe recipe_derive(const RecipeInput *input);

/* The recipe's groups, for a schedule whose peak is matrix_rate; nothing is clipped. */
OptimizerSettings recipe_optimizer(const Recipe *recipe);

/* Muon for the matrices of layers, beside AdamW at `adamw_rate` for all else, for a schedule whose peak is
 * matrix_rate. */
OptimizerSettings optimizer_muon(const AdamwSettings *adamw, double adamw_rate, double matrix_rate);

#endif
