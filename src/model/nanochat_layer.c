#include "model/nanochat_layer.h"

#include "model/emit.h"
#include "model/nanochat_weights.h"

static const float value_gate_factor = 3, qk_scale = 1.2f;

static QkvShape qkv_shape(const Pass *pass) {
    const ModelConfig *config = pass->config;
    return (QkvShape){.N = pass->N,
                      .T = pass->T,
                      .H = config->heads,
                      .KV = config->kv_heads,
                      .D = config->head_dim,
                      .eps = (float)config->norm_eps,
                      .scale = qk_scale};
}

static BlendShape blend_shape(const Pass *pass) {
    return (BlendShape){.n = pass->N * pass->config->dim, .sign = 1};
}

static Scalar scale_of(const Pass *pass, ModelWeight which, int layer) {
    return (Scalar){model_weight(pass->config, which), layer};
}

static ValueEmbedding value_embedding(const Pass *pass, int layer, int gates) {
    if (!model_layer_has_values(pass->config, layer)) return (ValueEmbedding){-1, -1, -1};
    return (ValueEmbedding){pass->tokens, value_weight(pass->config, layer, VALUE_TABLE), gates};
}

/* ---- Forward ---- */

/* Gates of the value embeddings, one for each key/value head; -1 where the layer has none. */
static int forward_gates(const Pass *pass, int layer, int norm1) {
    const ModelConfig *config = pass->config;
    if (!model_layer_has_values(config, layer)) return -1;
    int gates = pass_statistic(pass, pass->N * config->kv_heads, RECOMPUTE_NONE, "gates", layer);
    emit_gate_forward(pass->program, layer, gates, norm1, value_weight(config, layer, VALUE_GATE),
                      pass->N, config->dim, value_gate_factor);
    return gates;
}

/* Returns x + attention. */
static int forward_attention(const Pass *pass, int layer, LayerValues *values) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int64_t C = config->dim, N = pass->N, columns = pass_qkv_columns(config);
    QkvShape shape = qkv_shape(pass);

    values->norm1 = pass_activation(pass, C, RECOMPUTE_CHEAP, "norm1", layer);
    values->rstd1 = pass_statistic(pass, N, RECOMPUTE_NONE, "rstd1", layer);
    emit_norm_forward(program, layer, values->norm1, values->rstd1, values->blended, -1, N, C,
                      config->norm_eps);
    int projected = pass_activation(pass, columns, RECOMPUTE_LAYER, "projected qkv", layer);
    emit_linear(program, layer, whole(projected), whole(values->norm1), layer_weight(layer, QKV),
                operand_none, N);
    values->gates = forward_gates(pass, layer, values->norm1);
    values->qkv = pass_activation(pass, columns, RECOMPUTE_LAYER, "qkv", layer);
    values->rstd_qkv =
        pass_statistic(pass, N * (shape.H + shape.KV), RECOMPUTE_NONE, "rstd qkv", layer);
    emit_qkv_forward(program, layer, values->qkv, values->rstd_qkv, projected, pass->branch_start,
                     value_embedding(pass, layer, values->gates), &shape);
    values->attention = pass_attend(pass, layer, values->qkv, &values->lse);
    int out = pass_activation(pass, C, RECOMPUTE_LAYER, "middle", layer);
    emit_linear(program, layer, whole(out), whole(values->attention), layer_weight(layer, OUTPUT),
                whole(values->blended), N);
    return out;
}

/* Returns x + mlp. */
static int forward_mlp(const Pass *pass, int layer, LayerValues *values) {
    Program *program = pass->program;
    int64_t C = pass->config->dim, F = pass->config->ffn, N = pass->N;

    values->norm2 = pass_activation(pass, C, RECOMPUTE_CHEAP, "norm2", layer);
    values->rstd2 = pass_statistic(pass, N, RECOMPUTE_NONE, "rstd2", layer);
    emit_norm_forward(program, layer, values->norm2, values->rstd2, values->middle, -1, N, C,
                      pass->config->norm_eps);
    values->fc = pass_activation(pass, F, RECOMPUTE_MLP, "fc", layer);
    emit_linear(program, layer, whole(values->fc), whole(values->norm2), layer_weight(layer, FC),
                operand_none, N);
    values->activated = pass_activation(pass, F, RECOMPUTE_CHEAP, "activated", layer);
    emit_relu2_forward(program, layer, values->activated, values->fc, N * F);
    int out = pass_activation(pass, C, RECOMPUTE_NONE, "layer output", layer);
    emit_linear(program, layer, whole(out), whole(values->activated),
                layer_weight(layer, PROJECTION), whole(values->middle), N);
    return out;
}

int nanochat_forward_layer(const Pass *pass, int layer, LayerValues *values) {
    values->blended = pass_activation(pass, pass->config->dim, RECOMPUTE_CHEAP, "blended", layer);
    emit_blend_forward(pass->program, layer, values->blended, values->x, values->x0,
                       scale_of(pass, RESIDUAL_SCALES, layer), scale_of(pass, INPUT_SCALES, layer),
                       blend_shape(pass));
    values->middle = forward_attention(pass, layer, values);
    return forward_mlp(pass, layer, values);
}

/* ---- Backward ---- */

static int backward_mlp(const Pass *pass, int layer, const LayerValues *values, int dout) {
    Program *program = pass->program;
    int64_t C = pass->config->dim, F = pass->config->ffn;

    int dactivated = pass_linear_backward(pass, layer, layer_weight(layer, PROJECTION), dout,
                                          values->activated, "activated");
    int dfc = pass_gradient(pass, F, "fc", layer);
    emit_relu2_backward(program, layer, dfc, dactivated, values->fc, pass->N * F);
    int dnorm2 =
        pass_linear_backward(pass, layer, layer_weight(layer, FC), dfc, values->norm2, "norm2");
    int dx = pass_gradient(pass, C, "middle", layer);
    emit_norm_backward(program, layer, dx, dnorm2, dout, values->middle, values->rstd2, -1, pass->N,
                       C);
    return dx;
}

/* The gradient of qkv's projection, given that of what attention took; that of the value embeddings' gates
 * is put into *dgates (-1 where there are none). */
static int backward_qkv(const Pass *pass, int layer, const LayerValues *values, int dqkv,
                        int *dgates) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    QkvShape shape = qkv_shape(pass);
    ValueEmbedding embedding = value_embedding(pass, layer, values->gates);
    bool has_values = embedding.table >= 0;

    int dprojected = pass_gradient(pass, pass_qkv_columns(config), "projected qkv", layer);
    int dvalues = has_values ? pass_gradient(pass, shape.KV * shape.D, "values", layer) : -1;
    *dgates = has_values ? program_buffer(program, BUFFER_ACTIVATION_GRADIENT, DTYPE_F32,
                                          pass->N * shape.KV, "dgates %d", layer)
                         : -1;
    emit_qkv_backward(program, layer, dprojected, dvalues, *dgates, dqkv, values->qkv,
                      values->rstd_qkv, embedding, &shape);
    if (has_values)
        emit_embedding_backward(program, embedding.table, dvalues, pass->tokens, pass->N);
    return dprojected;
}

static int backward_attention(const Pass *pass, int layer, const LayerValues *values, int dout) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int64_t C = config->dim;
    AttentionShape shape = pass_attention_shape(pass, layer);

    int dattention = pass_linear_backward(pass, layer, layer_weight(layer, OUTPUT), dout,
                                          values->attention, "attention");
    int dqkv = pass_gradient(pass, pass_qkv_columns(config), "qkv", layer), dgates;
    emit_attention_backward(program, layer, dqkv, dattention, values->attention, values->lse,
                            values->qkv, pass->document_start, &shape);
    int dprojected = backward_qkv(pass, layer, values, dqkv, &dgates);
    int dnorm1 = pass_linear_backward(pass, layer, layer_weight(layer, QKV), dprojected,
                                      values->norm1, "norm1");
    if (dgates >= 0)
        emit_gate_backward(program, layer, dnorm1, value_weight(config, layer, VALUE_GATE), dgates,
                           values->gates, values->norm1, pass->N, C, value_gate_factor);
    int dx = pass_gradient(pass, C, "blended", layer);
    emit_norm_backward(program, layer, dx, dnorm1, dout, values->blended, values->rstd1, -1,
                       pass->N, C);
    return dx;
}

int nanochat_backward_layer(const Pass *pass, int layer, const LayerValues *values, int dout,
                            int dx0) {
    bool first = layer == pass->config->layers - 1;
    int dmiddle = backward_mlp(pass, layer, values, dout);
    int dblended = backward_attention(pass, layer, values, dmiddle);
    int dx = pass_gradient(pass, pass->config->dim, "layer input", layer);
    emit_blend_backward(pass->program, layer, dx, dx0, dblended, values->x, values->x0,
                        scale_of(pass, RESIDUAL_SCALES, layer), scale_of(pass, INPUT_SCALES, layer),
                        first ? -1 : dx0, blend_shape(pass));
    return dx;
}
