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

void emit_norm_forward(Program *program, int layer, int out, int rstd, int x, int weight, int64_t N,
                       double eps);
/* dresidual may be -1. */
void emit_norm_backward(Program *program, int layer, int dx, int dout, int dresidual, int x,
                        int rstd, int weight, int64_t N);

void emit_swiglu_forward(Program *program, int layer, int out, int gate_up, int64_t N, int64_t F);
void emit_swiglu_backward(Program *program, int layer, int dgate_up, int dout, int gate_up,
                          int64_t N, int64_t F);

/* Rotates query and key heads; `inverse` is the backward. */
void emit_rope(Program *program, int layer, int out, int x, const AttentionShape *shape,
               bool inverse);

void emit_attention_forward(Program *program, int layer, int out, int lse, int qkv,
                            int document_start, const AttentionShape *shape);
void emit_attention_backward(Program *program, int layer, int dqkv, int dout, int out, int lse,
                             int qkv, int document_start, const AttentionShape *shape);
void emit_attention_decode(Program *program, int layer, int out, int key_cache, int value_cache,
                           int qkv, const AttentionShape *shape);

/* Losses of `count` tokens from `first` on; with `scale` > 0 the logits become their gradient. */
void emit_cross_entropy(Program *program, Operand losses, Operand logits, Operand targets,
                        int64_t count, int64_t vocab, float scale);

/* program->loss_sum += the sum of the micro-batch's losses. */
void emit_loss_sum(Program *program, int64_t N);

#endif
