/* Architectures: each writes its weights and its operations into a program. */
#ifndef HEARTH_MODEL_MODEL_H
#define HEARTH_MODEL_MODEL_H

#include "model/config.h"
#include "step/program.h"

typedef struct ModelSettings {
    int64_t micro_batch; /* B: rows of T = config.sequence_length tokens */
    int64_t logit_chunk; /* tokens whose logits are held at a time */
    int64_t
        batch_tokens;   /* of an optimizer step: the loss gradient is scaled by 1 / batch_tokens */
    bool document_mask; /* attention stays inside documents */
    int64_t context;    /* generation: tokens that the caches hold */
    int64_t prefill;    /* generation: prompt tokens taken at a time */
    int64_t score;      /* generation: tokens of the score section; 0 = it has none */
} ModelSettings;

typedef struct Model {
    const char *architecture;
    /* Adds the weights, and the parameters by their Hugging Face names. */
    void (*declare)(Program *program, const ModelConfig *config);
    /* Each adds one section (generation two or three), after declare() and
     * program_make_weight_buffers(). */
    void (*write_training)(Program *program, const ModelConfig *config,
                           const ModelSettings *settings);
    void (*write_evaluation)(Program *program, const ModelConfig *config,
                             const ModelSettings *settings);
    void (*write_generation)(Program *program, const ModelConfig *config,
                             const ModelSettings *settings);
} Model;

/* The model of config->architecture, or NULL with an error that lists those there are. */
const Model *model_find(const ModelConfig *config, Error *error);

/* Adds the inputs and outputs that all sections over micro-batches share: tokens, targets,
 * document_start, losses; and the rotary table of `positions` rows. */
void model_make_inputs(Program *program, const ModelConfig *config, int64_t B, int64_t positions);

/* The rotary table [positions, D/2, 2]: cosine and sine of position * theta^(-2i/D), the angle rounded
 * to fp32 as transformers does. */
void model_rope_table(float *cos_sin, int64_t positions, int64_t D, double theta);

/* The initial values of elements first..first + count - 1 of a parameter: a pure function of the seed and
 * of the indices of parameter and element. */
void model_initialise(const Program *program, int parameter, uint64_t seed, int64_t first,
                      int64_t count, float *values);

#endif
