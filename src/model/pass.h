/* What architectures share in writing a pass over tokens: its inputs, where its values lie, attention, the
 * head and the loss. */
#ifndef HEARTH_MODEL_PASS_H
#define HEARTH_MODEL_PASS_H

#include "model/model.h"
#include "step/recompute.h"

/* Where values are written: the program, the shape of what flows through it, and its inputs and outputs
 * (buffers; -1: none). */
typedef struct Pass {
    Program *program;
    const ModelConfig *config;
    int64_t B, T, N;
    int tokens, targets, losses, best;
    int document_start; /* -1: attention across documents */
    int branch_start;   /* score: where each token's branch begins; else -1 */
    int first_cache; /* generation: keys and values of layer 0, then those of layer 1…; else -1 */
} Pass;

/* A micro-batch: the section of training or of evaluation begins. */
Pass pass_begin_micro_batch(Program *program, SectionKind section, const ModelConfig *config,
                            const ModelSettings *settings);

/* Adds the caches and the inputs and outputs of the generation sections; returns the first cache. */
int pass_make_generation(Program *program, const ModelConfig *config,
                         const ModelSettings *settings);

/* New tokens behind the caches: a section of generation begins. */
Pass pass_begin_generation(Program *program, SectionKind section, const ModelConfig *config,
                           int first_cache);

/* Buffers of N rows of `columns` in the storage type, and of fp32 elements. */
int pass_activation(const Pass *pass, int64_t columns, RecomputeLevel level, const char *name,
                    int layer);
int pass_statistic(const Pass *pass, int64_t elements, RecomputeLevel level, const char *name,
                   int layer);
int pass_gradient(const Pass *pass, int64_t columns, const char *name, int layer);

AttentionShape pass_attention_shape(const Pass *pass, int layer);
int64_t pass_qkv_columns(const ModelConfig *config);

/* Attention over the micro-batch, or over the caches: returns its output, and sets lse (-1 for caches). */
int pass_attend(const Pass *pass, int layer, int qkv, int *lse);

/* The backward of a linear layer: dx[N,columns], and its weight gradient. */
int pass_linear_backward(const Pass *pass, int layer, int weight, int dout, int input,
                         const char *name);

typedef struct Head {
    int weight; /* the rows beyond the vocabulary are padding */
    float cap;  /* of the logits; 0: none */
    int64_t chunk;
    float scale; /* of the loss gradient; 0: no backward */
} Head;

/* The head and the loss, a chunk of tokens at a time, so that all logits are never held. With a scale also
 * their backward: returns the gradient of `normed`, the last norm's output. */
int pass_write_head(const Pass *pass, int normed, const Head *head);

#endif
