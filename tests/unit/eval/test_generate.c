/* Generation: whatever way the prompt goes into the caches, the tokens are the same; the ends of
 * it. */
#include "cpu/backend.h"
#include "eval/generate.h"
#include "make_model.h"

enum { CONTEXT = 150, DRAWN = 12 }; /* two prefills of 64 fit, a third does not */

typedef struct Collected {
    uint32_t ids[CONTEXT];
    size_t count, wanted;
} Collected;

static bool collect(void *context, uint32_t id) {
    Collected *collected = context;
    collected->ids[collected->count++] = id;
    return collected->count < collected->wanted;
}

static LoadedModel model;
static uint32_t prompt[CONTEXT];

static int open_model(void **state) {
    (void)state;
    Error error;
    ModelConfig config = small_model(CONTEXT);
    const InferenceSettings settings = {
        .backend = &backend_cpu, .context = CONTEXT, .storage = DTYPE_F32};
    assert_done(model_open(&model, save_model("generate", &config, true), &settings, &error),
                error);
    for (uint64_t i = 0; i < CONTEXT; i++) prompt[i] = (uint32_t)random_below(3, 0, i, VOCAB);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    model_close(&model);
    return 0;
}

static Generation of_prompt(int64_t count, Collected *collected) {
    collected->wanted = CONTEXT;
    return (Generation){.prompt = prompt,
                        .prompt_count = count,
                        .max_tokens = DRAWN,
                        .end_token = -1,
                        .token = collect,
                        .context = collected};
}

static Sampler *greedy(void) {
    Error error;
    Sampler *sampler = sampler_new(&(SamplingSettings){.top_p = 1}, VOCAB, &error);
    assert_done(sampler != NULL, error);
    return sampler;
}

/* The most likely tokens after the prompt, every token taken one by one from the first on. */
static void continue_one_by_one(int64_t count, uint32_t out[DRAWN]) {
    Error error;
    const Inference *inference = &model.inference;
    const Program *program = inference->program;
    float logits[VOCAB];
    uint32_t token = prompt[0];
    for (int64_t position = 0; position < count + DRAWN - 1; position++) {
        if (position < count) token = prompt[position];
        inference->backend->upload(inference->executor, program->new_tokens, 0, &token,
                                   sizeof token);
        assert_done(inference->backend->run(inference->executor, SECTION_DECODE,
                                            &(StepScalars){.position = position}, &error),
                    error);
        assert_done(inference->backend->download(inference->executor, program->logits, 0, logits,
                                                 sizeof logits, &error),
                    error);
        token = 0;
        for (uint32_t i = 0; i < VOCAB; i++)
            if (logits[i] > logits[token]) token = i;
        if (position >= count - 1) out[position - count + 1] = token;
    }
}

static void test_prefill_equals_one_by_one(void **state) {
    (void)state;
    const int64_t counts[] = {1, 2, 64, 65, 66, 128, 129, 130, CONTEXT - DRAWN};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        Error error;
        uint32_t expected[DRAWN];
        Collected collected = {0};
        Generation generation = of_prompt(counts[i], &collected);
        Sampler *sampler = greedy();
        assert_done(generate(&model.inference, sampler, &generation, &error), error);
        sampler_free(sampler);
        continue_one_by_one(counts[i], expected);
        assert_int_equal(collected.count, DRAWN);
        assert_memory_equal(collected.ids, expected, sizeof expected);
    }
}

static void test_same_seed_same_tokens(void **state) {
    (void)state;
    Error error;
    Collected runs[3] = {0};
    for (uint64_t i = 0; i < 3; i++) {
        Generation generation = of_prompt(5, &runs[i]);
        Sampler *sampler = sampler_new(
            &(SamplingSettings){.temperature = 1, .top_p = 1, .seed = i / 2}, VOCAB, &error);
        assert_done(generate(&model.inference, sampler, &generation, &error), error);
        sampler_free(sampler);
    }
    assert_memory_equal(runs[0].ids, runs[1].ids, sizeof runs[0].ids);
    assert_memory_not_equal(runs[0].ids, runs[2].ids, sizeof runs[0].ids);
}

static void test_ends(void **state) {
    (void)state;
    Error error;
    Collected all = {0}, some = {0};
    Sampler *sampler =
        sampler_new(&(SamplingSettings){.temperature = 1, .top_p = 1}, VOCAB, &error);
    Generation generation = of_prompt(5, &all);
    assert_done(generate(&model.inference, sampler, &generation, &error), error);

    generation = of_prompt(5, &some);
    some.wanted = 3;
    assert_done(generate(&model.inference, sampler, &generation, &error), error);
    assert_int_equal(some.count, 3);

    some.count = 0;
    generation = of_prompt(5, &some);
    generation.end_token = all.ids[4];
    assert_done(generate(&model.inference, sampler, &generation, &error), error);
    assert_true(some.count <= 4); /* the token may come earlier, too */
    assert_memory_equal(some.ids, all.ids, some.count * sizeof *some.ids);
    sampler_free(sampler);
}

static void test_the_context_fills_to_the_last_token(void **state) {
    (void)state;
    Error error;
    Collected collected = {0};
    Sampler *sampler = greedy();
    Generation generation = of_prompt(CONTEXT - 1, &collected);
    generation.max_tokens = 1;
    assert_done(generate(&model.inference, sampler, &generation, &error), error);
    assert_int_equal(collected.count, 1);
    generation.max_tokens = 2;
    assert_fails_with(generate(&model.inference, sampler, &generation, &error), error, "at most 1");
    generation = of_prompt(CONTEXT, &collected);
    assert_fails_with(generate(&model.inference, sampler, &generation, &error), error,
                      "shorten the prompt");
    generation = of_prompt(0, &collected);
    assert_fails_with(generate(&model.inference, sampler, &generation, &error), error, "empty");
    sampler_free(sampler);
}

static void test_prompts(void **state) {
    (void)state;
    Error error;
    Tokens ids = {0};
    assert_done(prompt_encode(model.tokenizer, "", 0, &ids, &error), error);
    assert_int_equal(ids.count, 1);
    assert_int_equal(ids.ids[0], tokenizer_document_separator(model.tokenizer));
    assert_done(prompt_encode(model.tokenizer, "the sea", 7, &ids, &error), error);
    assert_true(ids.count > 2);
    assert_fails_with(prompt_encode(NULL, "the sea", 7, &ids, &error), error, "no tokenizer.json");
    tokens_free(&ids);
}

static void test_checkpoints_that_cannot_be_opened(void **state) {
    (void)state;
    Error error;
    LoadedModel other;
    const InferenceSettings settings = {
        .backend = &backend_cpu, .context = CONTEXT, .storage = DTYPE_F32};
    assert_fails_with(model_open(&other, test_path("nothing"), &settings, &error), error,
                      "nothing");
    ModelConfig config = small_model(16);
    config.vocab = VOCAB - 1;
    const char *small = save_model("small vocabulary", &config, true);
    assert_fails_with(model_open(&other, small, &settings, &error), error, "another model");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefill_equals_one_by_one),
        cmocka_unit_test(test_same_seed_same_tokens),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_the_context_fills_to_the_last_token),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_checkpoints_that_cannot_be_opened),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
