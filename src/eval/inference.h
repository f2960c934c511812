/* A checkpoint made ready to run: for losses of given text, and for generation. */
#ifndef HEARTH_EVAL_INFERENCE_H
#define HEARTH_EVAL_INFERENCE_H

#include "model/model.h"
#include "step/backend.h"
#include "text/tokenizer.h"

typedef struct InferenceSettings {
    const Backend *backend;
    int64_t sequence_length; /* T of evaluation; 0 = the model's own */
    int64_t micro_batch;     /* B of evaluation; 0 = no evaluation section, -1 = some 2048 tokens */
    int64_t context; /* tokens that generation can hold, at most T; 0 = no generation sections */
    int64_t prefill; /* prompt tokens taken at a time; 0 = some, else context is a multiple of it */
    int64_t score;   /* tokens of the score section, with which context may exceed T; 0 = none */
    bool across_documents; /* evaluation: attention is not kept inside documents */
    Dtype storage;         /* fp32 or bf16 */
} InferenceSettings;

/* What evaluation and generation run on. The trainer fills one from its own program. */
typedef struct Inference {
    const Backend *backend;
    const Program *program;
    Executor *executor;
    const Tokenizer *tokenizer; /* NULL when the checkpoint has none */
} Inference;

typedef struct LoadedModel {
    ModelConfig config;
    Program program;
    Tokenizer *tokenizer;
    Inference inference; /* points into this structure, which must not move */
} LoadedModel;

/* Opens a Hugging Face model directory: config.json, model.safetensors, and tokenizer.json if there
 * is one, whose ids the model's vocabulary must hold. */
bool model_open(LoadedModel *model, const char *checkpoint, const InferenceSettings *settings,
                Error *error);
void model_close(LoadedModel *model);

#endif
