/* nanochat's weights: their order, names and initial values. */
#ifndef HEARTH_MODEL_NANOCHAT_WEIGHTS_H
#define HEARTH_MODEL_NANOCHAT_WEIGHTS_H

#include "model/config.h"
#include "step/program.h"

/* Those that every layer has. */
typedef enum LayerWeight { QKV, OUTPUT, FC, PROJECTION, LAYER_WEIGHTS } LayerWeight;

/* Those of the layers with value embeddings. */
typedef enum ValueWeight { VALUE_GATE, VALUE_TABLE, VALUE_WEIGHTS } ValueWeight;

/* Those of the model, behind the layers'; the scalars, which are precise, are the last. */
typedef enum ModelWeight {
    HEAD,
    SMEAR_GATE,
    RESIDUAL_SCALES, /* r_i */
    INPUT_SCALES,    /* a_i */
    SMEAR_LAMBDA,
    BACKOUT_LAMBDA,
} ModelWeight;

enum { EMBEDDING = 0 };

static inline int layer_weight(int layer, LayerWeight which) {
    return 1 + layer * LAYER_WEIGHTS + (int)which;
}

static inline int value_weight(const ModelConfig *config, int layer, ValueWeight which) {
    return layer_weight((int)config->layers, QKV) + layer / 2 * VALUE_WEIGHTS + (int)which;
}

static inline int model_weight(const ModelConfig *config, ModelWeight which) {
    int value_layers = ((int)config->layers + 1) / 2;
    return value_weight(config, 2 * value_layers, VALUE_GATE) + (int)which;
}

void nanochat_declare(Program *program, const ModelConfig *config);

#endif
