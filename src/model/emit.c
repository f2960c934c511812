#include "model/emit.h"

static void emit_matmul(Program *program, int layer, Operand out, Operand a, Operand b,
                        Operand addend, MatmulShape shape) {
    Operation *operation = program_add(program, OP_MATMUL, layer);
    operation->outputs[0] = out;
    operation->inputs[0] = a;
    operation->inputs[1] = b;
    operation->inputs[2] = addend;
    operation->matmul = shape;
}

static Weight weight_of(const Program *program, int weight) {
    return weight < 0 ? (Weight){0} : program->weights[weight];
}

void emit_linear(Program *program, int layer, Operand out, Operand a, int weight, Operand addend,
                 int64_t tokens) {
    Weight w = weight_of(program, weight);
    emit_matmul(
        program, layer, out, a, program_working(program, weight), addend,
        (MatmulShape){
            .M = tokens, .N = w.rows, .K = w.columns, .transpose_b = true, .role = MATMUL_FORWARD});
}

void emit_linear_input_gradient(Program *program, int layer, Operand da, Operand dout, int weight,
                                int64_t tokens) {
    Weight w = weight_of(program, weight);
    emit_matmul(
        program, layer, da, dout, program_working(program, weight), operand_none,
        (MatmulShape){.M = tokens, .N = w.columns, .K = w.rows, .role = MATMUL_INPUT_GRADIENT});
}

void emit_linear_weight_gradient(Program *program, int layer, int weight, Operand dout, Operand a,
                                 int64_t tokens) {
    Weight w = weight_of(program, weight);
    Operand gradient = program_gradient(program, weight);
    emit_matmul(program, layer, gradient, dout, a, gradient,
                (MatmulShape){.M = w.rows,
                              .N = w.columns,
                              .K = tokens,
                              .transpose_a = true,
                              .role = MATMUL_WEIGHT_GRADIENT});
}

void emit_embedding_forward(Program *program, int out, int tokens, int weight, int64_t N) {
    Weight w = weight_of(program, weight);
    Operation *operation = program_add(program, OP_EMBEDDING_FORWARD, -1);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(tokens);
    operation->inputs[1] = program_working(program, weight);
    operation->embedding.N = N, operation->embedding.C = w.columns, operation->embedding.V = w.rows;
}

void emit_embedding_backward(Program *program, int weight, int dout, int tokens, int64_t N) {
    Weight w = weight_of(program, weight);
    Operation *operation = program_add(program, OP_EMBEDDING_BACKWARD, -1);
    operation->outputs[0] = program_gradient(program, weight);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(tokens);
    operation->embedding.N = N, operation->embedding.C = w.columns, operation->embedding.V = w.rows;
}

void emit_norm_forward(Program *program, int layer, int out, int rstd, int x, int weight, int64_t N,
                       double eps) {
    Operation *operation = program_add(program, OP_RMSNORM_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->outputs[1] = whole(rstd);
    operation->inputs[0] = whole(x);
    operation->inputs[1] = program_working(program, weight);
    operation->norm.N = N, operation->norm.C = weight_of(program, weight).columns;
    operation->norm.eps = (float)eps;
}

void emit_norm_backward(Program *program, int layer, int dx, int dout, int dresidual, int x,
                        int rstd, int weight, int64_t N) {
    Operation *operation = program_add(program, OP_RMSNORM_BACKWARD, layer);
    operation->outputs[0] = whole(dx);
    operation->outputs[1] = program_gradient(program, weight);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(dresidual);
    operation->inputs[2] = whole(x);
    operation->inputs[3] = whole(rstd);
    operation->inputs[4] = program_working(program, weight);
    operation->norm.N = N, operation->norm.C = weight_of(program, weight).columns;
}

void emit_swiglu_forward(Program *program, int layer, int out, int gate_up, int64_t N, int64_t F) {
    Operation *operation = program_add(program, OP_SWIGLU_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(gate_up);
    operation->swiglu.N = N, operation->swiglu.F = F;
}

void emit_swiglu_backward(Program *program, int layer, int dgate_up, int dout, int gate_up,
                          int64_t N, int64_t F) {
    Operation *operation = program_add(program, OP_SWIGLU_BACKWARD, layer);
    operation->outputs[0] = whole(dgate_up);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(gate_up);
    operation->swiglu.N = N, operation->swiglu.F = F;
}

void emit_rope(Program *program, int layer, int out, int x, const AttentionShape *shape,
               bool inverse) {
    Operation *operation =
        program_add(program, inverse ? OP_ROPE_BACKWARD : OP_ROPE_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x);
    operation->inputs[1] = whole(program->cos_sin);
    operation->rope.N = shape->B * shape->T, operation->rope.T = shape->T;
    operation->rope.heads = shape->H + 2 * shape->KV;
    operation->rope.rotated = shape->H + shape->KV;
    operation->rope.D = shape->D;
}

void emit_attention_forward(Program *program, int layer, int out, int lse, int qkv,
                            int document_start, const AttentionShape *shape) {
    Operation *operation = program_add(program, OP_ATTENTION_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->outputs[1] = whole(lse);
    operation->inputs[0] = whole(qkv);
    operation->inputs[1] = whole(document_start);
    operation->attention = *shape;
}

void emit_attention_backward(Program *program, int layer, int dqkv, int dout, int out, int lse,
                             int qkv, int document_start, const AttentionShape *shape) {
    Operation *operation = program_add(program, OP_ATTENTION_BACKWARD, layer);
    operation->outputs[0] = whole(dqkv);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(out);
    operation->inputs[2] = whole(lse);
    operation->inputs[3] = whole(qkv);
    operation->inputs[4] = whole(document_start);
    operation->attention = *shape;
}

void emit_attention_decode(Program *program, int layer, int out, int key_cache, int value_cache,
                           int qkv, const AttentionShape *shape) {
    Operation *operation = program_add(program, OP_ATTENTION_DECODE, layer);
    operation->outputs[0] = whole(out);
    operation->outputs[1] = whole(key_cache);
    operation->outputs[2] = whole(value_cache);
    operation->inputs[0] = whole(qkv);
    operation->attention = *shape;
}

void emit_cross_entropy(Program *program, Operand losses, Operand logits, Operand targets,
                        int64_t count, int64_t vocab, float scale) {
    Operation *operation = program_add(program, OP_CROSS_ENTROPY, -1);
    operation->outputs[0] = losses;
    operation->outputs[1] = logits;
    operation->inputs[0] = targets;
    operation->cross_entropy = (CrossEntropyShape){
        .N = count, .V = vocab, .stride = vocab, .scale = scale, .gradient = scale > 0};
}

void emit_loss_sum(Program *program, int64_t N) {
    Operation *operation = program_add(program, OP_LOSS_SUM, -1);
    operation->outputs[0] = whole(program->loss_sum);
    operation->inputs[0] = whole(program->losses);
    operation->elements.n = N;
}
