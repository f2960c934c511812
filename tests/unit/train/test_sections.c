/* The sections of one program agree: evaluation with training, generation and scoring with evaluation; for
 * both architectures, and for nanochats so shallow that the middle layer is the last. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "support.h"
#include "training.h"

enum { B = 2, T = 48, VOCAB = 70, PREFILL = 8, SCORE = 24, PREFIX = 16 };

static int32_t tokens[B * T], targets[B * T], document_start[B * T];

static ModelConfig nanochat(int64_t layers) {
    ModelConfig config = model_config_nanochat(layers, 16);
    config.dim = 64, config.heads = 4, config.kv_heads = 2, config.ffn = 256;
    config.vocab = VOCAB, config.sequence_length = T, config.window = 7;
    return config;
}

/* No weight is zero, so that every part of the model counts. */
static void initialise(Training *training) {
    for (int p = 0; p < training->program.parameter_count; p++) {
        WeightRole role = training->program.weights[training->program.parameters[p].weight].role;
        int64_t count = training_parameter_elements(training, p);
        float *values = test_calloc((size_t)count, sizeof *values);
        for (int64_t i = 0; i < count; i++)
            values[i] = 0.3f * (random_uniform(5, (uint64_t)p, (uint64_t)i) - 0.5f) +
                        (role_is_matrix(role) ? 0.0f : 0.8f);
        training_set(training, p, values);
        test_free(values);
    }
}

static void make_data(void) {
    for (uint64_t i = 0; i < B * T; i++) {
        tokens[i] = (int32_t)random_below(3, 0, i, VOCAB);
        targets[i] = (int32_t)random_below(3, 1, i, VOCAB);
    }
}

static void open_model(Training *training, const ModelConfig *config, Dtype storage,
                       int64_t micro_batch, RecomputeLevel recompute, Offload offload) {
    Error error;
    assert_done(model_config_check(config, &error), error);
    const AdamwSettings adamw = {.beta1 = 0.9f, .beta2 = 0.95f, .epsilon = 1e-8f};
    training_open(training, config,
                  &(TrainingSettings){.storage = storage,
                                      .micro_batch = micro_batch,
                                      .batch_tokens = B * T,
                                      .logit_chunk = 20,
                                      .document_mask = true,
                                      .recompute = recompute,
                                      .offload = offload,
                                      .optimizer = optimizer_adamw(&adamw),
                                      .evaluation = true,
                                      .context = T,
                                      .prefill = PREFILL,
                                      .score = SCORE});
    make_data();
    initialise(training);
}

/* The losses of every token by the evaluation section. */
static void evaluate(Training *training, float losses[B * T]) {
    training_upload(training, training->program.tokens, tokens, sizeof tokens);
    training_upload(training, training->program.targets, targets, sizeof targets);
    training_upload(training, training->program.document_start, document_start,
                    sizeof document_start);
    training_run(training, SECTION_EVALUATE, &(StepScalars){0});
    training_download(training, training->program.losses, losses, B * T * sizeof *losses);
}

static void upload_new(Training *training, int buffer, int64_t first, int64_t count) {
    const Program *program = &training->program;
    int32_t previous[SCORE];
    for (int64_t i = 0; i < count; i++) previous[i] = first + i ? tokens[first + i - 1] : -1;
    training_upload(training, buffer, tokens + first, count * 4);
    if (program->previous_tokens >= 0)
        training_upload(training, program->previous_tokens, previous, count * 4);
}

static void prefill(Training *training, int64_t count) {
    for (int64_t at = 0; at < count; at += PREFILL) {
        upload_new(training, training->program.new_tokens, at, PREFILL);
        training_run(training, SECTION_PREFILL, &(StepScalars){.position = at});
    }
}

/* -log of the target's share, from the logits of the decode section. */
static double loss_of_logits(const float logits[VOCAB], int32_t target) {
    double sum = 0;
    for (int v = 0; v < VOCAB; v++) sum += exp((double)logits[v]);
    return log(sum) - (double)logits[target];
}

static void check_decode(Training *training, const float *losses) {
    float logits[VOCAB];
    prefill(training, PREFIX);
    for (int64_t at = PREFIX; at < T; at++) {
        upload_new(training, training->program.new_tokens, at, 1);
        training_run(training, SECTION_DECODE, &(StepScalars){.position = at});
        training_download(training, training->program.logits, logits, sizeof logits);
        assert_true(fabs(loss_of_logits(logits, targets[at]) - (double)losses[at]) < 1e-4);
    }
}

/* Three branches behind the prefix, of which the second is the row's own going on: it must have the losses of
 * the row, whatever stands beside it. Then the row alone, piece by piece, through the caches. */
static void check_score(Training *training, const float *losses) {
    const Program *program = &training->program;
    const int64_t starts[] = {0, 6, 16, SCORE};
    int32_t input[SCORE], start[SCORE], wanted[SCORE], previous[SCORE];
    float found[SCORE];
    prefill(training, PREFIX);
    for (int branch = 0; branch < 3; branch++)
        for (int64_t i = starts[branch]; i < starts[branch + 1]; i++) {
            int64_t place = PREFIX + i - starts[branch];
            input[i] = branch == 1 ? tokens[place] : tokens[T + i];
            previous[i] = i == starts[branch] ? tokens[PREFIX - 1] : input[i - 1];
            wanted[i] = branch == 1 ? targets[place] : targets[i];
            start[i] = (int32_t)starts[branch];
        }
    training_upload(training, program->score_input, input, sizeof input);
    training_upload(training, program->score_start, start, sizeof start);
    training_upload(training, program->score_targets, wanted, sizeof wanted);
    if (program->previous_tokens >= 0)
        training_upload(training, program->previous_tokens, previous, sizeof previous);
    training_run(training, SECTION_SCORE, &(StepScalars){.position = PREFIX});
    training_download(training, program->score_losses, found, sizeof found);
    for (int64_t i = starts[1]; i < starts[2]; i++)
        assert_true(fabsf(found[i] - losses[PREFIX + i - starts[1]]) < 1e-4f);

    memset(start, 0, sizeof start);
    training_upload(training, program->score_start, start, sizeof start);
    for (int64_t at = 0; at < T; at += SCORE) {
        upload_new(training, program->score_input, at, SCORE);
        training_upload(training, program->score_targets, targets + at, SCORE * 4);
        training_run(training, SECTION_SCORE, &(StepScalars){.position = at});
        training_download(training, program->score_losses, found, sizeof found);
        for (int64_t i = 0; i < SCORE; i++) assert_true(fabsf(found[i] - losses[at + i]) < 1e-4f);
    }
}

static void sections_agree(const ModelConfig *config) {
    Training training;
    float losses[B * T];
    double sum = 0;
    open_model(&training, config, DTYPE_F32, B, RECOMPUTE_NONE, OFFLOAD_NONE);
    evaluate(&training, losses);
    for (int i = 0; i < B * T; i++) sum += (double)losses[i];
    double trained = training_micro_batch(&training, tokens, targets, document_start);
    assert_true(trained == sum);
    check_decode(&training, losses);
    check_score(&training, losses);
    training_close(&training);
}

static void test_sections_agree(void **state) {
    (void)state;
    ModelConfig config = small_llama(VOCAB, T);
    sections_agree(&config);
    for (int64_t layers = 1; layers <= 5; layers++) {
        config = nanochat(layers);
        sections_agree(&config);
    }
}

/* The loss's slope along the gradient of one parameter, against that gradient's own length. */
static void check_slope(Training *still, Training *moving, int parameter) {
    int64_t count = training_parameter_elements(still, parameter);
    float *gradient = test_calloc(2 * (size_t)count, sizeof *gradient), *moved = gradient + count;
    memcpy(gradient, training_gradient(still, parameter), (size_t)count * sizeof *gradient);
    const float *start = training_master(still, parameter);
    double squares = 0, losses[2];
    for (int64_t i = 0; i < count; i++) squares += (double)gradient[i] * (double)gradient[i];
    double length = 4e-3 / sqrt(squares);
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < count; i++)
            moved[i] = start[i] + (float)((side ? -length : length) * (double)gradient[i]);
        training_set(moving, parameter, moved);
        losses[side] = training_micro_batch(moving, tokens, targets, document_start);
    }
    training_set(moving, parameter, start);
    double slope = (losses[0] - losses[1]) / (2 * length) / (B * T);
    /* The loss has noise in its last bits, which counts where the gradient is next to nothing. */
    if (!(fabs(slope - squares) < 0.01 * squares + 1e-4 * sqrt(squares)))
        fail_msg("%lld layers, %s: slope %.6g, gradient %.6g", (long long)still->config.layers,
                 still->program.parameters[parameter].name, slope, squares);
    test_free(gradient);
}

/* In shallow models the middle layer is the last, or the first: what its output and x0 get from several
 * places must all be there. */
static void test_gradients_of_shallow_models(void **state) {
    (void)state;
    for (int64_t layers = 1; layers <= 4; layers++) {
        ModelConfig config = nanochat(layers);
        Training still, moving;
        open_model(&still, &config, DTYPE_F32, B, RECOMPUTE_NONE, OFFLOAD_NONE);
        open_model(&moving, &config, DTYPE_F32, B, RECOMPUTE_NONE, OFFLOAD_NONE);
        training_micro_batch(&still, tokens, targets, document_start);
        for (int p = 0; p < still.program.parameter_count; p++) check_slope(&still, &moving, p);
        training_close(&still);
        training_close(&moving);
    }
}

static void assert_same_gradients(Training *a, Training *b) {
    for (int p = 0; p < a->program.parameter_count; p++)
        assert_memory_equal(training_gradient(a, p), training_gradient(b, p),
                            (size_t)training_parameter_elements(a, p) * sizeof(float));
}

static void test_recompute_and_offload_change_no_bit(void **state) {
    (void)state;
    const ModelConfig config = nanochat(5);
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        Training kept;
        open_model(&kept, &config, (Dtype)storage, B, RECOMPUTE_NONE, OFFLOAD_NONE);
        double loss = training_micro_batch(&kept, tokens, targets, document_start);
        for (int level = RECOMPUTE_NONE; level < RECOMPUTE_LEVELS; level++)
            for (int offload = OFFLOAD_NONE; offload < OFFLOADS; offload++) {
                Training again;
                open_model(&again, &config, (Dtype)storage, B, (RecomputeLevel)level,
                           (Offload)offload);
                assert_true(training_micro_batch(&again, tokens, targets, document_start) == loss);
                assert_same_gradients(&kept, &again);
                training_close(&again);
            }
        training_close(&kept);
    }
}

/* Rows one by one, or at once: sums in another order, else the same. */
static void test_micro_batches_do_not_meet(void **state) {
    (void)state;
    const ModelConfig config = nanochat(4);
    Training whole_batch, rows;
    open_model(&whole_batch, &config, DTYPE_F32, B, RECOMPUTE_NONE, OFFLOAD_NONE);
    open_model(&rows, &config, DTYPE_F32, 1, RECOMPUTE_NONE, OFFLOAD_NONE);
    double once = training_micro_batch(&whole_batch, tokens, targets, document_start), sum = 0;
    for (int row = 0; row < B; row++)
        sum += training_micro_batch(&rows, tokens + row * T, targets + row * T, document_start);
    assert_true(fabs(sum / once - 1) < 1e-6);
    for (int p = 0; p < rows.program.parameter_count; p++) {
        const float *left = training_gradient(&whole_batch, p),
                    *right = training_gradient(&rows, p);
        double largest = 0, difference = 0;
        for (int64_t i = 0; i < training_parameter_elements(&rows, p); i++) {
            largest = fmax(largest, fabs((double)left[i]));
            difference = fmax(difference, fabs((double)left[i] - (double)right[i]));
        }
        assert_true(largest > 0 && difference < 1e-5 * largest);
    }
    training_close(&whole_batch);
    training_close(&rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sections_agree),
        cmocka_unit_test(test_gradients_of_shallow_models),
        cmocka_unit_test(test_recompute_and_offload_change_no_bit),
        cmocka_unit_test(test_micro_batches_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
