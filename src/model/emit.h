/* Emitting single operations: each adds one operation to a program, and most the buffer of its result,
 * whose index they return. Shapes are as in step/operation.h. */
#ifndef HEARTH_MODEL_EMIT_H
#define HEARTH_MODEL_EMIT_H

#include "step/program.h"

/* out[M,N] = a · b^T: activations [M,K] times a weight stored [N,K]. */
void emit_linear(Program *program, int layer, Operand out, Operand a, int weight, Operand addend,
                 int64_t tokens);

/* da[tokens,columns] = dout · weight. */
void emit_linear_input_gradient(Program *program, int layer, Operand da, Operand dout, int weight,
                                int64_t tokens);

/* dweight[rows,columns] += dout^T · a. */
void emit_linear_weight_gradient(Program *program, int layer, int weight, Operand dout, Operand a,
                                 int64_t tokens);

void emit_embedding_forward(Program *program, int out, int tokens, int weight, int64_t N);
void emit_embedding_backward(Program *program, int weight, int dout, int tokens, int64_t N);

/* A weight of -1: without weights. */
void emit_norm_forward(Program *program, int layer, int out, int rstd, int x, int weight, int64_t N,
                       int64_t C, double eps);
/* dresidual may be -1. */
void emit_norm_backward(Program *program, int layer, int dx, int dout, int dresidual, int x,
                        int rstd, int weight, int64_t N, int64_t C);

void emit_swiglu_forward(Program *program, int layer, int out, int gate_up, int64_t N, int64_t F);
void emit_swiglu_backward(Program *program, int layer, int dgate_up, int dout, int gate_up,
                          int64_t N, int64_t F);

void emit_relu2_forward(Program *program, int layer, int out, int x, int64_t n);
void emit_relu2_backward(Program *program, int layer, int dx, int dout, int x, int64_t n);

/* Rotates query and key heads; branch_start may be -1. */
void emit_rope_forward(Program *program, int layer, int out, int x, int branch_start,
                       const AttentionShape *shape);
void emit_rope_backward(Program *program, int layer, int dx, int dout, const AttentionShape *shape);

/* What value embeddings need: the tokens, the table (a weight) and the gates; all -1 without. */
typedef struct ValueEmbedding {
    int tokens, table, gates;
} ValueEmbedding;

void emit_qkv_forward(Program *program, int layer, int out, int rstd, int projected,
                      int branch_start, ValueEmbedding values, const QkvShape *shape);
void emit_qkv_backward(Program *program, int layer, int dprojected, int dvalues, int dgates,
                       int dqkv, int qkv, int rstd, ValueEmbedding values, const QkvShape *shape);

void emit_attention_forward(Program *program, int layer, int out, int lse, int qkv,
                            int document_start, const AttentionShape *shape);
void emit_attention_backward(Program *program, int layer, int dqkv, int dout, int out, int lse,
                             int qkv, int document_start, const AttentionShape *shape);
/* branch_start may be -1. */
void emit_attention_decode(Program *program, int layer, int out, int key_cache, int value_cache,
                           int qkv, int branch_start, const AttentionShape *shape);

/* The weight has a row for each gate, of as many columns as it looks at; C is that of x. */
void emit_gate_forward(Program *program, int layer, int gates, int x, int weight, int64_t N,
                       int64_t C, float factor);
/* dx += */
void emit_gate_backward(Program *program, int layer, int dx, int weight, int dgates, int gates,
                        int x, int64_t N, int64_t C, float factor);

/* One element of a precise weight; a weight of -1: no scalar, which counts as 1. */
typedef struct Scalar {
    int weight;
    int64_t element;
} Scalar;

static const Scalar scalar_none = {-1, 0};

/* previous may be -1. */
void emit_smear_forward(Program *program, int out, int x, int gates, Scalar lambda, int previous,
                        const SmearShape *shape);
void emit_smear_backward(Program *program, int dx, int dgates, int dout, int x, int gates,
                         Scalar lambda, const SmearShape *shape);

/* out = a x + sign b y */
void emit_blend_forward(Program *program, int layer, int out, int x, int y, Scalar a, Scalar b,
                        BlendShape shape);
/* dy_addend may be -1. */
void emit_blend_backward(Program *program, int layer, int dx, int dy, int dout, int x, int y,
                         Scalar a, Scalar b, int dy_addend, BlendShape shape);

/* best may be none. */
void emit_cross_entropy(Program *program, Operand losses, Operand logits, Operand best,
                        Operand targets, CrossEntropyShape shape);

void emit_soft_cap(Program *program, int out, int x, int64_t n, float cap);

/* program->loss_sum += the sum of the micro-batch's losses. */
void emit_loss_sum(Program *program, int64_t N);

#endif
