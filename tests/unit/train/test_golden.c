/* Training against PyTorch: losses of each step, gradient norms and gradients, from the golden values in
 * tests/golden/llama (its README says how they were made and what each field is). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "golden.h"
#include "support.h"
#include "training.h"

typedef struct Golden {
    json_t *json;
    ModelConfig config;
    int64_t B, T, steps;
    int32_t *tokens, *targets, *document_start; /* [B,T] */
} Golden;

static void golden_open(Golden *golden, const char *name) {
    Error error;
    char path[64];
    snprintf(path, sizeof path, "llama/%s", name);
    golden->json = golden_read(path);
    assert_done(
        model_config_from_json(&golden->config, json_object_get(golden->json, "config"), &error),
        error);
    golden->B = golden_integer(golden->json, "batch"),
    golden->T = golden_integer(golden->json, "sequence_length");
    golden->steps = golden_integer(golden->json, "steps");
    golden->config.sequence_length = golden->T;
    int64_t window = golden_integer(golden->json, "window");
    if (window >= 0) {
        golden->config.window = window;
        memcpy(golden->config.window_pattern, "S", 2);
    }
    size_t N = (size_t)(golden->B * golden->T);
    golden->tokens = test_calloc(3 * N, sizeof *golden->tokens);
    golden->targets = golden->tokens + N, golden->document_start = golden->targets + N;
}

static void golden_close(Golden *golden) {
    test_free(golden->tokens);
    json_decref(golden->json);
}

/* The first batch as the file has it; later ones by the rule in the README. */
static void make_batch(Golden *golden, int64_t step) {
    static const char *const names[] = {"tokens", "targets", "document_start"};
    int32_t *const arrays[] = {golden->tokens, golden->targets, golden->document_start};
    const json_t *first = json_object_get(golden->json, "first_batch");
    if (step) {
        golden_batch(golden->tokens, golden->targets, step, golden->B, golden->T,
                     golden->config.vocab);
        return;
    }
    for (int a = 0; a < 3; a++)
        for (int64_t i = 0; i < golden->B * golden->T; i++)
            arrays[a][i] = (int32_t)json_integer_value(json_array_get(
                json_array_get(json_object_get(first, names[a]), (size_t)(i / golden->T)),
                (size_t)(i % golden->T)));
}

static void set_weights(Training *training, const Golden *golden) {
    const json_t *list = json_object_get(golden->json, "parameters");
    assert_int_equal(json_array_size(list), training->program.parameter_count);
    for (size_t k = 0; k < json_array_size(list); k++) {
        int index = training_find(training, golden_text(json_array_get(list, k), "name"));
        assert_int_equal(index, k);
        int64_t count = training_parameter_elements(training, index);
        bool vector = !role_is_matrix(
            training->program.weights[training->program.parameters[index].weight].role);
        float *values = test_calloc((size_t)count, sizeof *values);
        for (int64_t i = 0; i < count; i++)
            values[i] = (random_uniform(GOLDEN_SEED, k, (uint64_t)i) - 0.5f) * 0x1p-3f +
                        (vector ? 1.0f : 0.0f);
        training_set(training, index, values);
        test_free(values);
    }
}

static int64_t count_targets(const Golden *golden) {
    int64_t count = 0;
    for (int64_t i = 0; i < golden->B * golden->T; i++) count += golden->targets[i] >= 0;
    return count;
}

static void assert_near(const char *what, int64_t step, double value, double golden,
                        double relative) {
    if (!(fabs(value - golden) <= relative * fabs(golden)))
        fail_msg("%s %lld: %.9g, PyTorch has %.9g (relative difference %.2g, allowed %.2g)", what,
                 (long long)step, value, golden, fabs(value / golden - 1), relative);
}

/* Gradients of the first step. */
static void check_gradients(Training *training, const Golden *golden, int64_t targets,
                            double relative) {
    const json_t *list = json_object_get(golden->json, "gradients");
    double scale = (double)training->batch_tokens / (double)targets;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const float *gradient = training_gradient(training, (int)k);
        int64_t count = training_parameter_elements(training, (int)k);
        GoldenDifference found =
            golden_difference(json_array_get(list, k), k, gradient, count, scale);
        double difference = fmax(fmax(found.norm, found.projection), found.element);
        if (difference > relative)
            fail_msg("gradient of %s differs by %.2g, allowed %.2g",
                     training->program.parameters[k].name, difference, relative);
    }
}

/* Trains as the file says and compares. */
static void compare(const char *name, Dtype storage, RecomputeLevel recompute, double relative) {
    Golden golden;
    Training training;
    golden_open(&golden, name);
    TrainingSettings settings = {.storage = storage,
                                 .micro_batch = golden.B,
                                 .batch_tokens = golden.B * golden.T,
                                 .logit_chunk = 40,
                                 .document_mask = true,
                                 .recompute = recompute,
                                 .optimizer = optimizer_adamw(&(AdamwSettings){.beta1 = 0.9f,
                                                                               .beta2 = 0.95f,
                                                                               .epsilon = 1e-8f,
                                                                               .weight_decay = 0.1f,
                                                                               .clip_norm = 1})};
    training_open(&training, &golden.config, &settings);
    set_weights(&training, &golden);
    double worst = 0;
    for (int64_t step = 0; step < training_steps(golden.steps); step++) {
        make_batch(&golden, step);
        int64_t targets = count_targets(&golden);
        double loss =
            training_micro_batch(&training, golden.tokens, golden.targets, golden.document_start) /
            (double)targets;
        double expected = golden_number_at(golden.json, "losses", (size_t)step);
        worst = fmax(worst, fabs(loss / expected - 1));
        assert_near("loss of step", step, loss, expected, relative);
        if (step == 0)
            check_gradients(&training, &golden, targets, storage == DTYPE_F32 ? 2e-4 : 0.03);
        float norm = training_update(
            &training, step + 1,
            (float)golden_number_at(golden.json, "learning_rates", (size_t)step), targets);
        assert_near("gradient norm of step", step, (double)norm,
                    golden_number_at(golden.json, "grad_norms", (size_t)step), 20 * relative);
    }
    print_message("%s: worst relative difference of a loss %.2g\n", name, worst);
    training_close(&training);
    golden_close(&golden);
}

static void test_fp32(void **state) {
    (void)state;
    compare("fp32.json", DTYPE_F32, RECOMPUTE_NONE, 1e-4);
    compare("fp32_tied.json", DTYPE_F32, RECOMPUTE_LAYER, 1e-4);
    compare("fp32_head112.json", DTYPE_F32, RECOMPUTE_MLP, 1e-4);
}

static void test_bf16(void **state) {
    (void)state;
    compare("bf16.json", DTYPE_BF16, RECOMPUTE_NONE, 1e-2);
    compare("bf16_tied.json", DTYPE_BF16, RECOMPUTE_CHEAP, 1e-2);
}

static void test_documents_and_windows(void **state) {
    (void)state;
    compare("packed.json", DTYPE_F32, RECOMPUTE_NONE, 1e-4);
    compare("window.json", DTYPE_F32, RECOMPUTE_LAYER, 1e-4);
    compare("packed_window.json", DTYPE_F32, RECOMPUTE_NONE, 1e-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fp32), cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_documents_and_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
