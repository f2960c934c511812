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
    Operation *operation = program_add(program, OP_EMBEDDING_FORWARD, w.layer);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(tokens);
    operation->inputs[1] = program_working(program, weight);
    operation->embedding.N = N, operation->embedding.C = w.columns, operation->embedding.V = w.rows;
}

void emit_embedding_backward(Program *program, int weight, int dout, int tokens, int64_t N) {
    Weight w = weight_of(program, weight);
    Operation *operation = program_add(program, OP_EMBEDDING_BACKWARD, w.layer);
    operation->outputs[0] = program_gradient(program, weight);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(tokens);
    operation->embedding.N = N, operation->embedding.C = w.columns, operation->embedding.V = w.rows;
}

static Operand working_or_none(const Program *program, int weight) {
    return weight < 0 ? operand_none : program_working(program, weight);
}

static Operand gradient_or_none(const Program *program, int weight) {
    return weight < 0 ? operand_none : program_gradient(program, weight);
}

void emit_norm_forward(Program *program, int layer, int out, int rstd, int x, int weight, int64_t N,
                       int64_t C, double eps) {
    Operation *operation = program_add(program, OP_RMSNORM_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->outputs[1] = whole(rstd);
    operation->inputs[0] = whole(x);
    operation->inputs[1] = working_or_none(program, weight);
    operation->norm.N = N, operation->norm.C = C;
    operation->norm.eps = (float)eps;
}

void emit_norm_backward(Program *program, int layer, int dx, int dout, int dresidual, int x,
                        int rstd, int weight, int64_t N, int64_t C) {
    Operation *operation = program_add(program, OP_RMSNORM_BACKWARD, layer);
    operation->outputs[0] = whole(dx);
    operation->outputs[1] = gradient_or_none(program, weight);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(dresidual);
    operation->inputs[2] = whole(x);
    operation->inputs[3] = whole(rstd);
    operation->inputs[4] = working_or_none(program, weight);
    operation->norm.N = N, operation->norm.C = C;
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

void emit_relu2_forward(Program *program, int layer, int out, int x, int64_t n) {
    Operation *operation = program_add(program, OP_RELU2_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x);
    operation->elements.n = n;
}

void emit_relu2_backward(Program *program, int layer, int dx, int dout, int x, int64_t n) {
    Operation *operation = program_add(program, OP_RELU2_BACKWARD, layer);
    operation->outputs[0] = whole(dx);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(x);
    operation->elements.n = n;
}

static Operation *add_rope(Program *program, OperationKind kind, int layer, int out, int x,
                           const AttentionShape *shape) {
    Operation *operation = program_add(program, kind, layer);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x);
    operation->inputs[1] = whole(program->cos_sin);
    operation->rope.N = shape->B * shape->T, operation->rope.T = shape->T;
    operation->rope.heads = shape->H + 2 * shape->KV;
    operation->rope.rotated = shape->H + shape->KV;
    operation->rope.D = shape->D;
    return operation;
}

void emit_rope_forward(Program *program, int layer, int out, int x, int branch_start,
                       const AttentionShape *shape) {
    add_rope(program, OP_ROPE_FORWARD, layer, out, x, shape)->inputs[2] = whole(branch_start);
}

void emit_rope_backward(Program *program, int layer, int dx, int dout,
                        const AttentionShape *shape) {
    add_rope(program, OP_ROPE_BACKWARD, layer, dx, dout, shape);
}

void emit_qkv_forward(Program *program, int layer, int out, int rstd, int projected,
                      int branch_start, ValueEmbedding values, const QkvShape *shape) {
    Operation *operation = program_add(program, OP_QKV_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->outputs[1] = whole(rstd);
    operation->inputs[0] = whole(projected);
    operation->inputs[1] = whole(program->cos_sin);
    operation->inputs[2] = whole(branch_start);
    operation->inputs[3] = whole(values.tokens);
    operation->inputs[4] = working_or_none(program, values.table);
    operation->inputs[5] = whole(values.gates);
    operation->qkv = *shape;
}

void emit_qkv_backward(Program *program, int layer, int dprojected, int dvalues, int dgates,
                       int dqkv, int qkv, int rstd, ValueEmbedding values, const QkvShape *shape) {
    Operation *operation = program_add(program, OP_QKV_BACKWARD, layer);
    operation->outputs[0] = whole(dprojected);
    operation->outputs[1] = whole(dvalues);
    operation->outputs[2] = whole(dgates);
    operation->inputs[0] = whole(dqkv);
    operation->inputs[1] = whole(qkv);
    operation->inputs[2] = whole(rstd);
    operation->inputs[3] = whole(program->cos_sin);
    operation->inputs[4] = whole(values.tokens);
    operation->inputs[5] = working_or_none(program, values.table);
    operation->inputs[6] = whole(values.gates);
    operation->qkv = *shape;
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
                           int qkv, int branch_start, const AttentionShape *shape) {
    Operation *operation = program_add(program, OP_ATTENTION_DECODE, layer);
    operation->outputs[0] = whole(out);
    operation->outputs[1] = whole(key_cache);
    operation->outputs[2] = whole(value_cache);
    operation->inputs[0] = whole(qkv);
    operation->inputs[1] = whole(branch_start);
    operation->attention = *shape;
}

static GateShape gate_shape(const Program *program, int weight, int64_t N, int64_t C,
                            float factor) {
    Weight w = weight_of(program, weight);
    return (GateShape){.N = N, .C = C, .gates = w.rows, .channels = w.columns, .factor = factor};
}

void emit_gate_forward(Program *program, int layer, int gates, int x, int weight, int64_t N,
                       int64_t C, float factor) {
    Operation *operation = program_add(program, OP_GATE_FORWARD, layer);
    operation->outputs[0] = whole(gates);
    operation->inputs[0] = whole(x);
    operation->inputs[1] = program_working(program, weight);
    operation->gate = gate_shape(program, weight, N, C, factor);
}

void emit_gate_backward(Program *program, int layer, int dx, int weight, int dgates, int gates,
                        int x, int64_t N, int64_t C, float factor) {
    Operation *operation = program_add(program, OP_GATE_BACKWARD, layer);
    operation->outputs[0] = whole(dx);
    operation->outputs[1] = program_gradient(program, weight);
    operation->inputs[0] = whole(dgates);
    operation->inputs[1] = whole(gates);
    operation->inputs[2] = whole(x);
    operation->inputs[3] = program_working(program, weight);
    operation->gate = gate_shape(program, weight, N, C, factor);
}

static Operand scalar_value(const Program *program, Scalar scalar) {
    Operand operand = program_precise(program, scalar.weight);
    operand.offset += scalar.element;
    return operand;
}

static Operand scalar_gradient(const Program *program, Scalar scalar) {
    Operand operand = gradient_or_none(program, scalar.weight);
    operand.offset += scalar.element;
    return operand;
}

void emit_smear_forward(Program *program, int out, int x, int gates, Scalar lambda, int previous,
                        const SmearShape *shape) {
    Operation *operation = program_add(program, OP_SMEAR_FORWARD, -1);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x);
    operation->inputs[1] = whole(gates);
    operation->inputs[2] = scalar_value(program, lambda);
    operation->inputs[3] = whole(previous);
    operation->smear = *shape;
}

void emit_smear_backward(Program *program, int dx, int dgates, int dout, int x, int gates,
                         Scalar lambda, const SmearShape *shape) {
    Operation *operation = program_add(program, OP_SMEAR_BACKWARD, -1);
    operation->outputs[0] = whole(dx);
    operation->outputs[1] = whole(dgates);
    operation->outputs[2] = scalar_gradient(program, lambda);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(x);
    operation->inputs[2] = whole(gates);
    operation->inputs[3] = scalar_value(program, lambda);
    operation->smear = *shape;
}

void emit_blend_forward(Program *program, int layer, int out, int x, int y, Scalar a, Scalar b,
                        BlendShape shape) {
    Operation *operation = program_add(program, OP_BLEND_FORWARD, layer);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x);
    operation->inputs[1] = whole(y);
    operation->inputs[2] = scalar_value(program, a);
    operation->inputs[3] = scalar_value(program, b);
    operation->blend = shape;
}

void emit_blend_backward(Program *program, int layer, int dx, int dy, int dout, int x, int y,
                         Scalar a, Scalar b, int dy_addend, BlendShape shape) {
    Operation *operation = program_add(program, OP_BLEND_BACKWARD, layer);
    operation->outputs[0] = whole(dx);
    operation->outputs[1] = whole(dy);
    operation->outputs[2] = scalar_gradient(program, a);
    operation->outputs[3] = scalar_gradient(program, b);
    operation->inputs[0] = whole(dout);
    operation->inputs[1] = whole(x);
    operation->inputs[2] = whole(y);
    operation->inputs[3] = scalar_value(program, a);
    operation->inputs[4] = scalar_value(program, b);
    operation->inputs[5] = whole(dy_addend);
    operation->blend = shape;
}

void emit_cross_entropy(Program *program, Operand losses, Operand logits, Operand best,
                        Operand targets, CrossEntropyShape shape) {
    Operation *operation = program_add(program, OP_CROSS_ENTROPY, -1);
    operation->outputs[0] = losses;
    operation->outputs[1] = logits;
    operation->outputs[2] = best;
    operation->inputs[0] = targets;
    operation->cross_entropy = shape;
}

void emit_soft_cap(Program *program, int out, int x, int64_t n, float cap) {
    Operation *operation = program_add(program, OP_SOFT_CAP, -1);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x);
    operation->soft_cap.n = n, operation->soft_cap.cap = cap;
}

void emit_loss_sum(Program *program, int64_t N) {
    Operation *operation = program_add(program, OP_LOSS_SUM, -1);
    operation->outputs[0] = whole(program->loss_sum);
    operation->inputs[0] = whole(program->losses);
    operation->elements.n = N;
}
