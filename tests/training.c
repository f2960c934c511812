#include "training.h"

#include <string.h>

#include "cuda/backend.h"
#include "model/parameters.h"
#include "support.h"

/* HEARTH_TEST_DEVICE=cuda runs these tests on the GPU, or on the one for tests. */
static const Backend *backend_of_test(void) {
    const char *device = getenv("HEARTH_TEST_DEVICE");
    return device && !strcmp(device, "cuda") ? &backend_cuda : &backend_cpu;
}

ModelConfig small_llama(int64_t vocab, int64_t sequence_length) {
    return (ModelConfig){.architecture = "llama",
                         .layers = 2,
                         .dim = 48,
                         .heads = 3,
                         .kv_heads = 1,
                         .head_dim = 16,
                         .ffn = 80,
                         .vocab = vocab,
                         .sequence_length = sequence_length,
                         .tied = true,
                         .rope_theta = 10000,
                         .norm_eps = 1e-5,
                         .init_std = 0.02,
                         .window_pattern = "SL",
                         .window = 7,
                         .bos_id = -1,
                         .eos_id = -1};
}

int64_t training_steps(int64_t steps) {
    const char *most = getenv("HEARTH_TEST_STEPS");
    return most && atoll(most) < steps ? atoll(most) : steps;
}

void training_open(Training *training, const ModelConfig *config,
                   const TrainingSettings *settings) {
    Error error;
    *training = (Training){.backend = backend_of_test(),
                           .config = *config,
                           .batch_tokens = settings->batch_tokens,
                           .momentum = 0.95f,
                           .weight_decay = 1};
    Program *program = &training->program;
    const Model *model = model_find(config, &error);
    assert_done(model, error);
    ModelSettings sizes = {.micro_batch = settings->micro_batch,
                           .logit_chunk = settings->logit_chunk,
                           .batch_tokens = settings->batch_tokens,
                           .document_mask = settings->document_mask,
                           .context = settings->context,
                           .prefill = settings->prefill,
                           .score = settings->score};
    program_init(program, settings->storage);
    model->declare(program, config);
    program_make_weight_buffers(program, true);
    model_make_inputs(program, config, settings->micro_batch, config->sequence_length);
    model->write_training(program, config, &sizes);
    optimizer_write_update(program, &settings->optimizer);
    if (settings->evaluation) model->write_evaluation(program, config, &sizes);
    if (settings->context) model->write_generation(program, config, &sizes);
    assert_done(program_finish(program, &error), error);
    assert_done(recompute_apply(program, settings->recompute, &error), error);
    assert_done(offload_apply(program, settings->offload, &error), error);
    assert_done(layout_program(program, training->backend, &error), error);
    training->executor = training->backend->open(program, &error);
    assert_done(training->executor, error);
    assert_done(model_fill_tables(training->backend, training->executor, program, config, &error),
                error);
}

void training_close(Training *training) {
    training->backend->close(training->executor);
    test_free(training->copy);
    program_free(&training->program);
}

static int64_t offset_of(const Training *training, int index) {
    const Parameter *parameter = &training->program.parameters[index];
    const Weight *weight = &training->program.weights[parameter->weight];
    return weight->offset + parameter->first_row * weight->columns;
}

int64_t training_parameter_elements(const Training *training, int index) {
    const Parameter *parameter = &training->program.parameters[index];
    return parameter->rows * training->program.weights[parameter->weight].columns;
}

static const float *copy_of(Training *training, int buffer, int index) {
    Error error;
    int64_t count = training_parameter_elements(training, index);
    test_free(training->copy);
    training->copy = test_calloc((size_t)count, sizeof *training->copy);
    assert_done(training->backend->download(training->executor, buffer,
                                            offset_of(training, index) * 4, training->copy,
                                            count * 4, &error),
                error);
    return training->copy;
}

const float *training_gradient(Training *training, int index) {
    return copy_of(training, training->program.gradient, index);
}

const float *training_master(Training *training, int index) {
    return copy_of(training, training->program.master, index);
}

void training_set_gradient(Training *training, int index, int64_t element, float value) {
    training->backend->upload(training->executor, training->program.gradient,
                              (offset_of(training, index) + element) * 4, &value, sizeof value);
}

int training_find(const Training *training, const char *name) {
    const Program *program = &training->program;
    for (int i = 0; i < program->parameter_count; i++)
        if (!strcmp(program->parameters[i].name, name)) return i;
    fail_msg("the model has no parameter %s", name);
    return -1;
}

void training_set(Training *training, int index, const float *values) {
    const Program *program = &training->program;
    int64_t count = training_parameter_elements(training, index),
            offset = offset_of(training, index);
    training->backend->upload(training->executor, program->master, offset * 4, values, count * 4);
    if (program->working == program->master) return;
    bf16 *rounded = test_calloc((size_t)count, sizeof *rounded);
    for (int64_t i = 0; i < count; i++) rounded[i] = bf16_from_float(values[i]);
    training->backend->upload(training->executor, program->working, offset * 2, rounded, count * 2);
    test_free(rounded);
}

double training_micro_batch(Training *training, const int32_t *tokens, const int32_t *targets,
                            const int32_t *document_start) {
    Error error;
    const Program *program = &training->program;
    const Backend *backend = training->backend;
    int64_t N = program->B * program->T;
    backend->upload(training->executor, program->tokens, 0, tokens, N * 4);
    backend->upload(training->executor, program->targets, 0, targets, N * 4);
    if (document_start)
        backend->upload(training->executor, program->document_start, 0, document_start, N * 4);
    StepScalars scalars = {0};
    double sum = 0;
    backend->upload(training->executor, program->loss_sum, 0, &sum, sizeof sum);
    assert_done(backend->run(training->executor, SECTION_MICRO_BATCH, &scalars, &error), error);
    assert_done(
        backend->download(training->executor, program->loss_sum, 0, &sum, sizeof sum, &error),
        error);
    return sum;
}

void training_run(Training *training, SectionKind section, const StepScalars *scalars) {
    Error error;
    assert_done(training->backend->run(training->executor, section, scalars, &error), error);
}

void training_upload(Training *training, int buffer, const void *from, int64_t bytes) {
    training->backend->upload(training->executor, buffer, 0, from, bytes);
}

void training_download(Training *training, int buffer, void *to, int64_t bytes) {
    Error error;
    assert_done(training->backend->download(training->executor, buffer, 0, to, bytes, &error),
                error);
}

float training_update(Training *training, int64_t step, float learning_rate, int64_t targets) {
    Error error;
    float norm;
    StepScalars scalars = {.learning_rate = learning_rate,
                           .momentum = training->momentum,
                           .weight_decay = training->weight_decay,
                           .step = step,
                           .seed = 1,
                           .gradient_scale = (float)training->batch_tokens / (float)targets};
    assert_done(training->backend->run(training->executor, SECTION_UPDATE, &scalars, &error),
                error);
    assert_done(training->backend->download(training->executor, training->program.gradient_norm, 0,
                                            &norm, sizeof norm, &error),
                error);
    return norm;
}
