/* nanochat's model around its layers: embedding and smear before them, the mid-layer's subtraction and the
 * head behind, forward and backward; and the sections that are made of it. */
#include "model/nanochat.h"

#include <stdlib.h>

#include "base/integer.h"
#include "base/memory.h"
#include "model/emit.h"
#include "model/nanochat_layer.h"
#include "model/nanochat_weights.h"

static const float logit_cap = 15;

/* What the ends of the model leave for their backward (buffers). */
typedef struct EndValues {
    int embedded, normed, rstd, gates;  /* x0 = smear(normed) */
    int x_mid, x_last, last, last_rstd; /* last = x_last - lambda x_mid */
} EndValues;

static SmearShape smear_shape(const Pass *pass) {
    return (SmearShape){.N = pass->N, .T = pass->T, .C = pass->config->dim};
}

static BlendShape blend_shape(const Pass *pass, float sign) {
    return (BlendShape){.n = pass->N * pass->config->dim, .sign = sign};
}

static Scalar lambda(const Pass *pass, ModelWeight which) {
    return (Scalar){model_weight(pass->config, which), 0};
}

static int middle_layer(const ModelConfig *config) {
    return (int)config->layers / 2;
}

/* ---- Forward ---- */

/* rms(wte[tokens]) */
static int embed(const Pass *pass, int tokens, const char *name, EndValues *values) {
    int64_t C = pass->config->dim;
    values->embedded = pass_activation(pass, C, RECOMPUTE_NONE, name, 0);
    emit_embedding_forward(pass->program, values->embedded, tokens, EMBEDDING, pass->N);
    int normed = pass_activation(pass, C, RECOMPUTE_CHEAP, name, 1);
    values->rstd = pass_statistic(pass, pass->N, RECOMPUTE_NONE, "embedded rstd", 0);
    emit_norm_forward(pass->program, -1, normed, values->rstd, values->embedded, -1, pass->N, C,
                      pass->config->norm_eps);
    return normed;
}

/* x0: each token's embedding with some of the one before it, which generation is given and training finds
 * in the row. */
static int smear(const Pass *pass, EndValues *values) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    EndValues unused;
    int previous =
        pass->first_cache < 0 ? -1 : embed(pass, program->previous_tokens, "previous", &unused);
    values->normed = embed(pass, pass->tokens, "embedded", values);
    values->gates = pass_statistic(pass, pass->N, RECOMPUTE_NONE, "smear gates", 0);
    emit_gate_forward(program, -1, values->gates, values->normed, model_weight(config, SMEAR_GATE),
                      pass->N, config->dim, 1);
    int x0 = pass_activation(pass, config->dim, RECOMPUTE_NONE, "x0", 0);
    SmearShape shape = smear_shape(pass);
    emit_smear_forward(program, x0, values->normed, values->gates, lambda(pass, SMEAR_LAMBDA),
                       previous, &shape);
    return x0;
}

/* All layers. `layers` has room for what each leaves, or is NULL where nothing follows backward. */
static void forward(const Pass *pass, EndValues *ends, LayerValues *layers) {
    LayerValues scratch;
    int x0 = smear(pass, ends), x = x0;
    for (int layer = 0; layer < pass->config->layers; layer++) {
        LayerValues *values = layers ? &layers[layer] : &scratch;
        values->x = x, values->x0 = x0;
        x = nanochat_forward_layer(pass, layer, values);
        if (layer == middle_layer(pass->config)) ends->x_mid = x;
    }
    ends->x_last = x;
}

/* Returns the head's input. */
static int forward_end(const Pass *pass, EndValues *values) {
    int64_t C = pass->config->dim;
    values->last = pass_activation(pass, C, RECOMPUTE_NONE, "backed out", 0);
    emit_blend_forward(pass->program, -1, values->last, values->x_last, values->x_mid, scalar_none,
                       lambda(pass, BACKOUT_LAMBDA), blend_shape(pass, -1));
    int normed = pass_activation(pass, C, RECOMPUTE_NONE, "last norm", 0);
    values->last_rstd = pass_statistic(pass, pass->N, RECOMPUTE_NONE, "last rstd", 0);
    emit_norm_forward(pass->program, -1, normed, values->last_rstd, values->last, -1, pass->N, C,
                      pass->config->norm_eps);
    return normed;
}

/* ---- Backward ---- */

/* x + y */
static int add(const Pass *pass, int x, int y, const char *name) {
    int sum = pass_gradient(pass, pass->config->dim, name, 0);
    emit_blend_forward(pass->program, -1, sum, x, y, scalar_none, scalar_none,
                       blend_shape(pass, 1));
    return sum;
}

/* From the gradient of the head's input to that of the last layer's output; *dmid becomes what the middle
 * layer's output gets from here. */
static int backward_end(const Pass *pass, const EndValues *values, int dnormed, int *dmid) {
    int64_t C = pass->config->dim;
    int dlast = pass_gradient(pass, C, "backed out", 0);
    emit_norm_backward(pass->program, -1, dlast, dnormed, -1, values->last, values->last_rstd, -1,
                       pass->N, C);
    int dx = pass_gradient(pass, C, "last output", 0);
    *dmid = pass_gradient(pass, C, "middle output", 0);
    emit_blend_backward(pass->program, -1, dx, *dmid, dlast, values->x_last, values->x_mid,
                        scalar_none, lambda(pass, BACKOUT_LAMBDA), -1, blend_shape(pass, -1));
    return dx;
}

/* From the gradient of the last layer's output to that of x0. */
static int backward_layers(const Pass *pass, const LayerValues *layers, int dx, int dmid) {
    int dx0 = pass_gradient(pass, pass->config->dim, "x0 of layers", 0);
    for (int layer = (int)pass->config->layers - 1; layer >= 0; layer--) {
        if (layer == middle_layer(pass->config)) dx = add(pass, dx, dmid, "middle sum");
        dx = nanochat_backward_layer(pass, layer, &layers[layer], dx, dx0);
    }
    return add(pass, dx, dx0, "x0"); /* the first layer's input, too */
}

static void backward_smear(const Pass *pass, const EndValues *values, int dx0) {
    Program *program = pass->program;
    int64_t C = pass->config->dim;
    int dnormed = pass_gradient(pass, C, "embedded norm", 0);
    int dgates =
        program_buffer(program, BUFFER_ACTIVATION_GRADIENT, DTYPE_F32, pass->N, "dsmear gates");
    SmearShape shape = smear_shape(pass);
    emit_smear_backward(program, dnormed, dgates, dx0, values->normed, values->gates,
                        lambda(pass, SMEAR_LAMBDA), &shape);
    emit_gate_backward(program, -1, dnormed, model_weight(pass->config, SMEAR_GATE), dgates,
                       values->gates, values->normed, pass->N, C, 1);
    int dembedded = pass_gradient(pass, C, "embedded", 0);
    emit_norm_backward(program, -1, dembedded, dnormed, -1, values->embedded, values->rstd, -1,
                       pass->N, C);
    emit_embedding_backward(program, EMBEDDING, dembedded, pass->tokens, pass->N);
}

/* ---- Sections ---- */

static Head head(const Pass *pass, int64_t chunk) {
    return (Head){.weight = model_weight(pass->config, HEAD), .cap = logit_cap, .chunk = chunk};
}

static void write_training(Program *program, const ModelConfig *config,
                           const ModelSettings *settings) {
    Error error;
    EndValues ends;
    LayerValues *layers = allocate((size_t)config->layers, sizeof *layers, &error);
    if (!layers) {
        program->failed = true;
        return;
    }
    Pass pass = pass_begin_micro_batch(program, SECTION_MICRO_BATCH, config, settings);
    forward(&pass, &ends, layers);
    int normed = forward_end(&pass, &ends), dmid;
    program->backward_begin = program->operation_count;
    Head last = head(&pass, settings->logit_chunk);
    last.scale = 1.0f / (float)settings->batch_tokens;
    int dx = backward_end(&pass, &ends, pass_write_head(&pass, normed, &last), &dmid);
    backward_smear(&pass, &ends, backward_layers(&pass, layers, dx, dmid));
    program->loss_sum = program_buffer(program, BUFFER_OUTPUT, DTYPE_F64, 1, "loss sum");
    emit_loss_sum(program, pass.N);
    free(layers);
}

/* The forward of a section that asks for losses only. */
static void write_losses(const Pass *pass, int64_t chunk) {
    EndValues ends;
    forward(pass, &ends, NULL);
    Head last = head(pass, chunk);
    pass_write_head(pass, forward_end(pass, &ends), &last);
}

static void write_evaluation(Program *program, const ModelConfig *config,
                             const ModelSettings *settings) {
    Pass pass = pass_begin_micro_batch(program, SECTION_EVALUATE, config, settings);
    write_losses(&pass, settings->logit_chunk);
}

/* The logits of one token, without those of the vocabulary's padding. */
static void write_logits(const Pass *pass, int normed) {
    Program *program = pass->program;
    const ModelConfig *config = pass->config;
    int raw = program_buffer(program, BUFFER_LOGITS, DTYPE_F32, model_padded_vocab(config),
                             "uncapped logits");
    emit_linear(program, -1, whole(raw), whole(normed), model_weight(config, HEAD), operand_none,
                1);
    emit_soft_cap(program, program->logits, raw, config->vocab, logit_cap);
}

static void write_generation(Program *program, const ModelConfig *config,
                             const ModelSettings *settings) {
    EndValues ends;
    int caches = pass_make_generation(program, config, settings);
    program->previous_tokens =
        program_buffer(program, BUFFER_INPUT, DTYPE_I32, larger(settings->prefill, settings->score),
                       "previous tokens");
    Pass pass = pass_begin_generation(program, SECTION_PREFILL, config, caches);
    forward(&pass, &ends, NULL);
    pass = pass_begin_generation(program, SECTION_DECODE, config, caches);
    forward(&pass, &ends, NULL);
    write_logits(&pass, forward_end(&pass, &ends));
    if (!settings->score) return;
    pass = pass_begin_generation(program, SECTION_SCORE, config, caches);
    write_losses(&pass, settings->logit_chunk);
}

const Model model_nanochat = {
    .architecture = "nanochat",
    .declare = nanochat_declare,
    .write_training = write_training,
    .write_evaluation = write_evaluation,
    .write_generation = write_generation,
};
