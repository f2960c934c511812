/* Plans: what is laid out does not collide, fits what was given, and is the same every time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cpu/backend.h"
#include "cuda/backend.h"
#include "support.h"
#include "train/step_plan.h"

static TrainSettings settings_of(const char *model, int64_t T, int64_t rows) {
    Error error;
    TrainSettings settings = {.storage = DTYPE_BF16,
                              .steps = 100,
                              .batch_tokens = T * rows,
                              .recompute = -1,
                              .offload = -1,
                              .optimizer_state = -1,
                              .eval_every = 10,
                              .sample_every = 10,
                              .optimizer = optimizer_adamw(&(AdamwSettings){0})};
    assert_done(model_config_load(&settings.model, model, &error), error);
    settings.model.vocab = model_preset_vocab(model);
    settings.model.sequence_length = T;
    return settings;
}

static StepPlan plan_of(const TrainSettings *settings) {
    Error error;
    StepPlan plan;
    Device device;
    assert_done(backend_cpu.describe(&device, settings->storage, &error), error);
    device.memory = (int64_t)64 << 30;
    assert_done(step_plan_make(&plan, settings, &backend_cpu, &device, &error), error);
    return plan;
}

typedef struct Life {
    int first, last;
} Life;

static void use(Life *lives, Operand operand, int when) {
    if (operand.buffer < 0) return;
    Life *life = &lives[operand.buffer];
    if (life->first < 0) life->first = when;
    life->last = when;
}

/* Lives from first to last use, worked out here anew. */
static Life *find_lives(const Program *program) {
    Life *lives = test_calloc((size_t)program->buffer_count, sizeof *lives);
    for (int b = 0; b < program->buffer_count; b++) lives[b] = (Life){-1, -1};
    for (int o = 0; o < program->operation_count; o++) {
        const Operation *operation = &program->operations[o];
        for (int i = 0; i < OPERATION_INPUTS; i++) use(lives, operation->inputs[i], o);
        for (int i = 0; i < OPERATION_OUTPUTS; i++) use(lives, operation->outputs[i], o);
        use(lives, operation->workspace, o);
    }
    for (int b = 0; b < program->buffer_count; b++) {
        if (program->buffers[b].kind < BUFFER_CACHE) lives[b] = (Life){0, program->operation_count};
        if (program->buffers[b].kind == BUFFER_CACHE)
            lives[b] = (Life){program->sections[SECTION_PREFILL].first, program->operation_count};
    }
    return lives;
}

/* Buffers that live together have memory of their own; only an operation that works in place may hand its
 * input's memory on to its output. A matmul may not: adding in place could change bits. */
static void assert_no_collision(const Program *program) {
    Life *lives = find_lives(program);
    for (int a = 0; a < program->buffer_count; a++)
        for (int b = 0; b < program->buffer_count; b++) {
            const Buffer *left = &program->buffers[a], *right = &program->buffers[b];
            if (a == b || lives[a].first < 0 || lives[b].first < 0 ||
                lives[a].first > lives[b].first || left->space != right->space)
                continue;
            if (lives[a].last < lives[b].first) continue;
            if (left->offset + buffer_bytes(left) <= right->offset ||
                right->offset + buffer_bytes(right) <= left->offset)
                continue;
            bool handed_on = lives[a].last == lives[b].first && left->offset == right->offset &&
                             buffer_bytes(left) == buffer_bytes(right) && a != b &&
                             program->operations[lives[b].first].kind != OP_MATMUL &&
                             program->operations[lives[b].first].outputs[0].buffer == b;
            if (!handed_on)
                fail_msg("%s and %s live together in the same memory", left->name, right->name);
        }
    for (int b = 0; b < program->buffer_count; b++)
        assert_true(program->buffers[b].offset >= 0 &&
                    program->buffers[b].offset + buffer_bytes(&program->buffers[b]) <=
                        (program->buffers[b].space == SPACE_HOST ? program->host_bytes
                                                                 : program->arena_bytes));
    test_free(lives);
}

static void test_buffers_never_collide(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-15m", 256, 32);
    for (int recompute = RECOMPUTE_NONE; recompute <= RECOMPUTE_LAYER; recompute++)
        for (int offload = OFFLOAD_NONE; offload < OFFLOADS; offload++) {
            settings.recompute = recompute, settings.offload = offload;
            settings.storage = recompute % 2 ? DTYPE_F32 : DTYPE_BF16;
            StepPlan plan = plan_of(&settings);
            assert_no_collision(&plan.program);
            step_plan_free(&plan);
        }
}

static void test_table_adds_up(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-42m", 512, 16);
    StepPlan plan = plan_of(&settings);
    int64_t sum = 0;
    for (int kind = 0; kind < BUFFER_KINDS; kind++) sum += plan.program.kind_bytes[kind];
    assert_true(sum == plan.program.arena_bytes);
    step_plan_free(&plan);
}

/* On every GPU of the list, with the backend's own scratch memory and staging. */
static void test_gpu_table_holds_all_that_is_taken(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-110m", 2048, 16);
    for (const char *const *name = device_names(); *name; name++) {
        Error error;
        Device device;
        StepPlan plan;
        MemoryRow rows[MEMORY_ROWS];
        int64_t staging, pinned, sum = 0;
        assert_done(device_find(&device, *name, settings.storage, &error), error);
        assert_done(step_plan_make(&plan, &settings, &backend_cuda, &device, &error), error);
        backend_cuda.beside(&plan.program, &staging, &pinned);
        assert_true(staging > 0 && pinned > 0);
        assert_true(plan.staging_bytes == staging);
        assert_true(plan.pinned_bytes == pinned + plan.program.host_bytes);
        step_plan_memory(&plan, rows);
        for (int i = 0; i < MEMORY_ROWS; i++) sum += rows[i].bytes;
        int64_t taken = plan.program.arena_bytes + staging + DRIVER_BYTES + plan.process_bytes;
        if (device.host_bandwidth == 0) taken += plan.pinned_bytes;
        assert_true(sum == taken && step_plan_peak(&plan) == taken);
        assert_true((double)taken <= 0.85 * (double)device.memory);
        assert_true((plan.process_bytes > 0) == (device.host_bandwidth == 0));
        step_plan_free(&plan);
    }
}

/* The planner counts what is beside the arena: a limit that leaves room for the arena alone is too low. */
static void test_staging_must_fit_too(void **state) {
    (void)state;
    Error error;
    Device device;
    StepPlan plan, tight;
    TrainSettings settings = settings_of("llama-15m", 1024, 8);
    settings.micro_batch = 8, settings.recompute = RECOMPUTE_NONE, settings.offload = OFFLOAD_NONE;
    settings.optimizer_state = STATE_FP32, settings.logit_chunk = 1024;
    assert_done(device_find(&device, "rtx-5090", settings.storage, &error), error);
    assert_done(step_plan_make(&plan, &settings, &backend_cuda, &device, &error), error);
    settings.memory = step_plan_peak(&plan);
    assert_done(step_plan_make(&tight, &settings, &backend_cuda, &device, &error), error);
    assert_true(step_plan_peak(&tight) == settings.memory);
    step_plan_free(&tight);
    settings.memory--;
    assert_fails_with(step_plan_make(&tight, &settings, &backend_cuda, &device, &error), error,
                      "does not fit");
    step_plan_free(&plan);
}

static void test_large_model_fits_small_memory(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-977m", 4096, 8);
    settings.memory = (int64_t)16 << 30;
    StepPlan plan = plan_of(&settings);
    assert_true(step_plan_peak(&plan) <= settings.memory);
    assert_true(plan.plan.choice.state !=
                STATE_FP32); /* 16 bytes a parameter alone would be 15.6 GB */
    assert_no_collision(&plan.program);
    step_plan_free(&plan);
}

static void test_less_memory_means_more_recompute_then_refusal(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-15m", 1024, 8);
    settings.micro_batch = 8;
    StepPlan plenty = plan_of(&settings);
    assert_int_equal(plenty.plan.choice.recompute, RECOMPUTE_NONE);
    settings.memory = step_plan_peak(&plenty) * 3 / 4;
    StepPlan tight = plan_of(&settings);
    assert_true(tight.plan.choice.recompute > RECOMPUTE_NONE);
    assert_true(step_plan_peak(&tight) <= settings.memory);
    assert_true(tight.plan.seconds > plenty.plan.seconds);
    step_plan_free(&plenty);
    step_plan_free(&tight);

    Error error;
    Device device;
    StepPlan none;
    assert_done(backend_cpu.describe(&device, settings.storage, &error), error);
    settings.memory = 100 << 20;
    assert_fails_with(step_plan_make(&none, &settings, &backend_cpu, &device, &error), error,
                      "--memory");
}

static void test_micro_batch_does_not_depend_on_recompute(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-110m", 1024, 32);
    int64_t micro_batch = 0, chunk = 0;
    for (int recompute = RECOMPUTE_NONE; recompute <= RECOMPUTE_LAYER; recompute++) {
        settings.recompute = recompute;
        StepPlan plan = plan_of(&settings);
        if (recompute == RECOMPUTE_NONE)
            micro_batch = plan.plan.choice.micro_batch, chunk = plan.plan.choice.logit_chunk;
        assert_int_equal(plan.plan.choice.micro_batch, micro_batch);
        assert_int_equal(plan.plan.choice.logit_chunk, chunk);
        step_plan_free(&plan);
    }
}

static StepPlan gpu_plan(const char *name, const TrainSettings *settings) {
    Error error;
    Device device;
    StepPlan plan;
    assert_done(device_find(&device, name, settings->storage, &error), error);
    assert_done(step_plan_make(&plan, settings, &backend_cuda, &device, &error), error);
    return plan;
}

/* Nothing is offloaded while all fits, nor where there is one memory. Where little fits it takes the place
 * of recompute, and of 8-bit moments. */
static void test_offload_is_chosen_where_it_is_predicted_faster(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-300m", 2048, 128);
    StepPlan plenty = gpu_plan("h200", &settings);
    assert_int_equal(plenty.plan.choice.offload, OFFLOAD_NONE);
    assert_int_equal(plenty.program.host_bytes, 0);
    step_plan_free(&plenty);

    settings = settings_of("llama-977m", 4096, 128);
    StepPlan tight = gpu_plan("rtx-5080", &settings);
    assert_true(tight.plan.choice.offload != OFFLOAD_NONE && tight.program.host_bytes > 0);
    assert_int_equal(tight.plan.choice.state, STATE_FP32);
    assert_true(step_plan_peak(&tight) <= (int64_t)16 << 30);
    assert_no_collision(&tight.program);
    settings.offload = OFFLOAD_NONE;
    StepPlan without = gpu_plan("rtx-5080", &settings);
    assert_int_equal(without.program.host_bytes, 0);
    assert_true(without.plan.seconds > tight.plan.seconds);
    step_plan_free(&tight);
    step_plan_free(&without);

    settings.offload = -1, settings.memory = (int64_t)16 << 30;
    StepPlan unified = gpu_plan("dgx-spark", &settings);
    assert_int_equal(unified.plan.choice.offload, OFFLOAD_NONE);
    step_plan_free(&unified);
}

static void test_micro_batch_does_not_depend_on_offload(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-110m", 1024, 32);
    settings.offload = OFFLOAD_NONE;
    StepPlan plain = gpu_plan("rtx-4090", &settings);
    for (int offload = OFFLOAD_STATE; offload < OFFLOADS; offload++) {
        settings.offload = offload;
        StepPlan plan = gpu_plan("rtx-4090", &settings);
        assert_int_equal(plan.plan.choice.offload, offload);
        assert_int_equal(plan.plan.choice.micro_batch, plain.plan.choice.micro_batch);
        assert_int_equal(plan.plan.choice.logit_chunk, plain.plan.choice.logit_chunk);
        assert_true(plan.program.arena_bytes < plain.program.arena_bytes);
        step_plan_free(&plan);
    }
    step_plan_free(&plain);
}

/* Too little memory, then what the message asks for. What is kept for this process grows with it in steps,
 * of which it may take one between two plans, but not two. */
static void assert_what_is_asked_for_fits(const char *model, const Backend *backend,
                                          const Device *device) {
    enum { PLANS = 3 };
    static const char option[] = "Give --memory ";
    Error error;
    StepPlan plan;
    TrainSettings settings = settings_of(model, 1024, 8);
    settings.memory = 1;
    for (int i = 0; i < PLANS; i++) {
        if (step_plan_make(&plan, &settings, backend, device, &error)) {
            assert_true(i > 0 && step_plan_peak(&plan) <= settings.memory);
            step_plan_free(&plan);
            return;
        }
        char number[32];
        const char *asked = strstr(error.message, option);
        if (!asked || sscanf(asked + strlen(option), "%31[0-9M]", number) != 1)
            fail_msg("no figure: %s", error.message);
        assert_done(parse_bytes(number, &settings.memory, &error), error);
    }
    fail_msg("what was asked for does not fit: %s", error.message);
}

static void test_what_is_asked_for_fits(void **state) {
    (void)state;
    Error error;
    Device processor, gpu;
    assert_done(backend_cpu.describe(&processor, DTYPE_BF16, &error), error);
    assert_done(device_find(&gpu, "rtx-4090", DTYPE_BF16, &error), error);
    static const char *const models[] = {"llama-110m", "d6"};
    for (int i = 0; i < 2; i++) {
        assert_what_is_asked_for_fits(models[i], &backend_cpu, &processor);
        assert_what_is_asked_for_fits(models[i], &backend_cuda, &gpu);
    }
}

static bool measure_nothing(Device *device, Dtype storage, int64_t memory, Error *error) {
    (void)device, (void)storage, (void)memory;
    return fail(error, "the clock has stopped");
}

static void test_failed_measurement_leaves_nothing(void **state) {
    (void)state;
    Error error;
    StepPlan plan;
    Backend backend = backend_cpu;
    backend.measure = measure_nothing;
    TrainSettings settings = settings_of("llama-15m", 256, 8);
    settings.memory = (int64_t)16 << 30;
    assert_fails_with(step_plan_make(&plan, &settings, &backend, NULL, &error), error, "stopped");
    assert_null(plan.program.operations);
}

static void test_absurd_sizes_are_planned_at_once(void **state) {
    (void)state;
    TrainSettings settings = settings_of("llama-15m", 1, (int64_t)1 << 46);
    settings.logit_chunk = INT64_MAX;
    StepPlan plan = plan_of(&settings);
    assert_true(plan.plan.choice.logit_chunk == plan.plan.choice.micro_batch);
    step_plan_free(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffers_never_collide),
        cmocka_unit_test(test_table_adds_up),
        cmocka_unit_test(test_gpu_table_holds_all_that_is_taken),
        cmocka_unit_test(test_staging_must_fit_too),
        cmocka_unit_test(test_large_model_fits_small_memory),
        cmocka_unit_test(test_less_memory_means_more_recompute_then_refusal),
        cmocka_unit_test(test_micro_batch_does_not_depend_on_recompute),
        cmocka_unit_test(test_offload_is_chosen_where_it_is_predicted_faster),
        cmocka_unit_test(test_micro_batch_does_not_depend_on_offload),
        cmocka_unit_test(test_what_is_asked_for_fits),
        cmocka_unit_test(test_failed_measurement_leaves_nothing),
        cmocka_unit_test(test_absurd_sizes_are_planned_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
