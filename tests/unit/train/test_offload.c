/* Offload changes no bit: not of losses, weights or moments, whenever copies happen, and a run goes on
 * under another offload where it was. */
#include <string.h>

#include "base/memory.h"
#include "model/parameters.h"
#include "support.h"
#include "training.h"

enum { ROWS = 4, T = 20, VOCAB = 61, STEPS = 2 };

/* Deep enough for copies to overlap. */
static ModelConfig model(void) {
    ModelConfig config = small_llama(VOCAB, T);
    config.layers = 4;
    return config;
}

/* When a copy takes place between its start and where it is waited for. */
typedef enum Timing { AT_START, AT_WAIT, TIMINGS } Timing;

/* The CPU copies at OP_COPY_START; with the kinds exchanged, where the copy is waited for. */
static void delay_copies(Program *program) {
    for (int o = 0; o < program->operation_count; o++) {
        Operation *operation = &program->operations[o];
        if (operation->kind == OP_COPY_START)
            operation->kind = OP_COPY_WAIT;
        else if (operation->kind == OP_COPY_WAIT)
            operation->kind = OP_COPY_START;
    }
}

typedef struct Choice {
    Dtype storage;
    StateFormat state;
    RecomputeLevel recompute;
    Offload offload;
    Timing timing;
    bool muon; /* for matrices */
} Choice;

static void open_choice(Training *training, Choice choice) {
    Error error;
    TrainingSettings settings = {.storage = choice.storage,
                                 .micro_batch = 2,
                                 .batch_tokens = ROWS * T,
                                 .logit_chunk = 16,
                                 .recompute = choice.recompute,
                                 .offload = choice.offload,
                                 .optimizer = optimizer_adamw(&(AdamwSettings){.beta1 = 0.9f,
                                                                               .beta2 = 0.95f,
                                                                               .epsilon = 1e-8f,
                                                                               .weight_decay = 0.1f,
                                                                               .clip_norm = 1})};
    settings.optimizer.state = choice.state;
    if (choice.muon)
        settings.optimizer.groups[WEIGHT_MATRIX] =
            (OptimizerGroup){.muon = true, .rate = 1, .beta2 = 0.9f, .weight_decay = 0.1f};
    const ModelConfig config = model();
    training_open(training, &config, &settings);
    if (choice.timing == AT_WAIT) delay_copies(&training->program);
    assert_done(
        parameters_initialise(training->backend, training->executor, &training->program, 5, &error),
        error);
}

/* Steps from number `first` on; returns the sum of all losses. */
static double run_steps(Training *training, int first, int count) {
    int32_t tokens[2 * T], targets[2 * T];
    double sum = 0;
    for (int step = first; step < first + count; step++) {
        for (int row = 0; row < ROWS; row += 2) {
            for (int i = 0; i < 2 * T; i++) {
                tokens[i] = (row * 7 + step * 5 + i * 3) % VOCAB;
                targets[i] = (row * 7 + step * 5 + i * 3 + 3) % VOCAB;
            }
            sum += training_micro_batch(training, tokens, targets, NULL);
        }
        sum += (double)training_update(training, step, 1e-2f, ROWS * T);
    }
    return sum;
}

/* Everything that a step leaves for the next: masters, working copies and the optimizers' state. */
static Bytes snapshot(Training *training) {
    Error error;
    Bytes all = {0};
    const Program *program = &training->program;
    const int buffers[] = {program->master,   program->working, program->moment1,
                           program->moment2,  program->absmax1, program->absmax2,
                           program->momentum, program->variance};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        if (buffers[i] < 0) continue;
        size_t size = (size_t)buffer_bytes(&program->buffers[buffers[i]]);
        assert_done(reserve(&all.data, &all.capacity, all.size + size, 1, &error), error);
        assert_done(training->backend->download(training->executor, buffers[i], 0,
                                                all.data + all.size, (int64_t)size, &error),
                    error);
        all.size += size;
    }
    return all;
}

static void assert_same(const Bytes *left, const Bytes *right) {
    assert_int_equal(left->size, right->size);
    assert_memory_equal(left->data, right->data, left->size);
}

/* Each offload and each timing against none, at one level of recompute. */
static void compare_offloads(Choice choice) {
    Training plain;
    open_choice(&plain, choice);
    double sum = run_steps(&plain, 1, STEPS);
    Bytes kept = snapshot(&plain);
    for (int offload = OFFLOAD_STATE; offload <= OFFLOAD_ALL; offload++)
        for (int timing = AT_START; timing < TIMINGS; timing++) {
            Training training;
            choice.offload = (Offload)offload, choice.timing = (Timing)timing;
            open_choice(&training, choice);
            assert_true(training.program.host_bytes > 0);
            assert_true(run_steps(&training, 1, STEPS) == sum);
            Bytes bytes = snapshot(&training);
            assert_same(&kept, &bytes);
            bytes_free(&bytes);
            training_close(&training);
        }
    bytes_free(&kept);
    training_close(&plain);
}

static void test_offload_changes_no_bit(void **state) {
    (void)state;
    for (int format = STATE_FP32; format <= STATE_8BIT; format++)
        for (int level = RECOMPUTE_NONE; level < RECOMPUTE_LEVELS; level++)
            compare_offloads((Choice){.storage = level % 2 ? DTYPE_F32 : DTYPE_BF16,
                                      .state = (StateFormat)format,
                                      .recompute = (RecomputeLevel)level,
                                      .muon = (format + level) % 2});
}

/* Saves what a checkpoint holds, as run_save() does, and loads it into another program. */
static void hand_over(Training *from, Training *to) {
    Error error;
    ProgramTensors tensors[2] = {{0}, {0}};
    Safetensors files[2];
    const char *const paths[] = {test_path("model.safetensors"),
                                 test_path("optimizer.safetensors")};
    assert_done(
        parameters_tensors(&tensors[0], from->backend, from->executor, &from->program, &error),
        error);
    assert_done(
        optimizer_tensors(&tensors[1], from->backend, from->executor, &from->program, &error),
        error);
    for (int i = 0; i < 2; i++) {
        assert_done(
            safetensors_write(paths[i], tensors[i].tensors, tensors[i].count, NULL, NULL, &error),
            error);
        program_tensors_free(&tensors[i]);
        assert_done(safetensors_open(&files[i], paths[i], &error), error);
    }
    assert_done(
        parameters_load(to->backend, to->executor, &to->program, &files[0], paths[0], &error),
        error);
    assert_done(
        optimizer_load(to->backend, to->executor, &to->program, &files[1], paths[1], &error),
        error);
    for (int i = 0; i < 2; i++) safetensors_close(&files[i]);
}

static void test_a_run_goes_on_under_another_offload(void **state) {
    (void)state;
    for (int format = STATE_FP32; format <= STATE_8BIT; format++)
        for (int before = OFFLOAD_NONE; before < OFFLOADS; before++) {
            Choice choice = {
                .storage = DTYPE_BF16, .state = (StateFormat)format, .muon = before % 2};
            Training whole_run, first, second;
            choice.offload = (Offload)before;
            open_choice(&whole_run, choice);
            open_choice(&first, choice);
            choice.offload = (Offload)(OFFLOAD_ALL - before);
            open_choice(&second, choice);
            run_steps(&whole_run, 1, 2 * STEPS);
            run_steps(&first, 1, STEPS);
            hand_over(&first, &second);
            run_steps(&second, 1 + STEPS, STEPS);
            Bytes expected = snapshot(&whole_run), actual = snapshot(&second);
            assert_same(&expected, &actual);
            bytes_free(&expected);
            bytes_free(&actual);
            training_close(&whole_run);
            training_close(&first);
            training_close(&second);
        }
}

/* State of one optimizer, or in one format, for a run with another. */
static void test_other_state_is_refused(void **state) {
    (void)state;
    static const Choice choices[] = {{.storage = DTYPE_BF16, .state = STATE_FP32},
                                     {.storage = DTYPE_BF16, .state = STATE_FP32, .muon = true},
                                     {.storage = DTYPE_BF16, .state = STATE_BF16, .muon = true}};
    enum { COUNT = sizeof choices / sizeof *choices };
    Error error;
    const char *path = test_path("optimizer.safetensors");
    for (int from = 0; from < COUNT; from++) {
        Training writer;
        ProgramTensors tensors = {0};
        Safetensors file;
        open_choice(&writer, choices[from]);
        assert_done(
            optimizer_tensors(&tensors, writer.backend, writer.executor, &writer.program, &error),
            error);
        assert_done(safetensors_write(path, tensors.tensors, tensors.count, NULL, NULL, &error),
                    error);
        program_tensors_free(&tensors);
        training_close(&writer);
        assert_done(safetensors_open(&file, path, &error), error);
        for (int to = 0; to < COUNT; to++) {
            Training reader;
            open_choice(&reader, choices[to]);
            bool done = optimizer_load(reader.backend, reader.executor, &reader.program, &file,
                                       path, &error);
            assert_true(done == (from == to));
            if (!done) assert_non_null(strstr(error.message, "the same --optimizer and"));
            training_close(&reader);
        }
        safetensors_close(&file);
    }
}

static int64_t arena_of(Offload offload, RecomputeLevel level, int64_t *host_bytes) {
    Training training;
    open_choice(&training, (Choice){.storage = DTYPE_BF16, .recompute = level, .offload = offload});
    int64_t bytes = training.program.arena_bytes;
    *host_bytes = training.program.host_bytes;
    training_close(&training);
    return bytes;
}

static void test_offload_frees_memory_of_the_device(void **state) {
    (void)state;
    int64_t host[OFFLOADS], arena[OFFLOADS];
    for (int offload = OFFLOAD_NONE; offload < OFFLOADS; offload++)
        arena[offload] = arena_of((Offload)offload, RECOMPUTE_NONE, &host[offload]);
    assert_int_equal(host[OFFLOAD_NONE], 0);
    assert_int_equal(host[OFFLOAD_ALL], host[OFFLOAD_STATE] + host[OFFLOAD_ACTIVATIONS]);
    assert_true(arena[OFFLOAD_STATE] < arena[OFFLOAD_NONE]);
    assert_true(arena[OFFLOAD_ACTIVATIONS] < arena[OFFLOAD_NONE]);
    assert_true(arena[OFFLOAD_ALL] < arena[OFFLOAD_STATE]);
    assert_true(arena[OFFLOAD_ALL] < arena[OFFLOAD_ACTIVATIONS]);
    int64_t inputs; /* of the layers, all that is kept */
    arena_of(OFFLOAD_ACTIVATIONS, RECOMPUTE_LAYER, &inputs);
    assert_int_equal(inputs, (model().layers - 1) * 2 * T * model().dim * 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offload_changes_no_bit),
        cmocka_unit_test(test_a_run_goes_on_under_another_offload),
        cmocka_unit_test(test_other_state_is_refused),
        cmocka_unit_test(test_offload_frees_memory_of_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
