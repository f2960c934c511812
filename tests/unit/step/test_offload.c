/* Where copies are put, what they may not meet, and what they are predicted to cost. */
#include "step/offload.h"

#include <math.h>
#include <string.h>

#include "step/backend.h"
#include "step/cost.h"
#include "support.h"

enum { LAYERS = 5, WIDTH = 4096, PARAMETERS = 1000, MATRICES = 3, ROWS = 40, COLUMNS = 30 };

/* Muon's update of a few matrices whose state lies side by side. */
static void write_muon(Program *program) {
    program->momentum =
        program_buffer(program, BUFFER_STATE, DTYPE_BF16, MATRICES * ROWS * COLUMNS, "momentum");
    program->variance =
        program_buffer(program, BUFFER_STATE, DTYPE_F32, MATRICES * ROWS, "variance");
    int x = program_buffer(program, BUFFER_WORKSPACE, DTYPE_BF16, ROWS * COLUMNS, "x");
    for (int k = 0; k < MATRICES; k++) {
        Operation *begin = program_add(program, OP_MUON_BEGIN, k);
        begin->muon.rows = ROWS, begin->muon.columns = COLUMNS;
        begin->outputs[0] = whole(x);
        begin->outputs[1] = (Operand){program->momentum, k * ROWS * COLUMNS};
        Operation *product = program_add(program, OP_MATMUL, k);
        product->matmul.M = product->matmul.N = product->matmul.K = COLUMNS;
        product->outputs[0] = product->inputs[0] = product->inputs[1] = whole(x);
        Operation *end = program_add(program, OP_MUON_END, k);
        end->muon = begin->muon;
        end->outputs[2] = (Operand){program->variance, k * ROWS};
        end->inputs[0] = whole(x);
    }
}

/* A chain of layers, each with one operation that keeps its input and a small statistic, and a backward
 * pass; `inputs` inputs for each layer. Then the update of as many weights, and of some matrices. */
static void write_program(Program *program, int inputs) {
    int kept[LAYERS][80], statistic[LAYERS], gradients[LAYERS + 1];
    program_init(program, DTYPE_BF16);
    program_begin_section(program, SECTION_MICRO_BATCH);
    for (int layer = 0; layer < LAYERS; layer++) {
        statistic[layer] = program_buffer(program, BUFFER_ACTIVATION, DTYPE_F32, 8, "statistic");
        for (int i = 0; i < inputs; i++) {
            kept[layer][i] =
                program_buffer(program, BUFFER_ACTIVATION, DTYPE_BF16, WIDTH, "x %d", layer);
            Operation *operation = program_add(program, OP_RMSNORM_FORWARD, layer);
            operation->norm.N = 1, operation->norm.C = WIDTH;
            operation->outputs[0] = whole(kept[layer][i]);
            operation->outputs[1] = whole(statistic[layer]);
            if (layer) operation->inputs[0] = whole(kept[layer - 1][i]);
        }
    }
    program->backward_begin = program->operation_count;
    for (int layer = LAYERS; layer >= 0; layer--)
        gradients[layer] =
            program_buffer(program, BUFFER_ACTIVATION_GRADIENT, DTYPE_BF16, WIDTH, "dx %d", layer);
    for (int layer = LAYERS - 1; layer >= 0; layer--)
        for (int i = 0; i < inputs; i++) {
            Operation *operation = program_add(program, OP_SWIGLU_BACKWARD, layer);
            operation->swiglu.N = 1, operation->swiglu.F = WIDTH / 2;
            operation->outputs[0] = whole(gradients[layer]);
            operation->inputs[0] = whole(gradients[layer + 1]);
            operation->inputs[1] = whole(kept[layer][i]);
            operation->inputs[2] = whole(statistic[layer]);
        }
    int64_t elements = LAYERS * 1024;
    program->moment1 = program_buffer(program, BUFFER_STATE, DTYPE_U8, elements, "moment1");
    program->absmax1 = program_buffer(program, BUFFER_STATE, DTYPE_F32, elements / 256, "absmax1");
    program->gradient_norm = program_buffer(program, BUFFER_OUTPUT, DTYPE_F32, 1, "norm");
    program_begin_section(program, SECTION_UPDATE);
    program_add(program, OP_GRADIENT_NORM, -1)->outputs[0] = whole(program->gradient_norm);
    for (int layer = 0; layer < LAYERS; layer++) {
        Operation *operation = program_add(program, OP_ADAMW, layer);
        operation->adamw.n = PARAMETERS;
        operation->outputs[2] = (Operand){program->moment1, layer * 1024};
        operation->outputs[4] = (Operand){program->absmax1, layer * 4};
        operation->inputs[0] = whole(program->gradient_norm);
    }
    write_muon(program);
}

static void offload(Program *program, Offload what) {
    Error error;
    write_program(program, 1);
    assert_done(offload_apply(program, what, &error), error);
}

static bool same_place(Operand a, Operand b) {
    return a.buffer == b.buffer && a.offset == b.offset;
}

static bool reads(const Operation *operation, Operand place) {
    for (int i = 0; i < OPERATION_INPUTS; i++)
        if (same_place(operation->inputs[i], place)) return true;
    return false;
}

static bool writes(const Operation *operation, Operand place) {
    for (int i = 0; i < OPERATION_OUTPUTS; i++)
        if (same_place(operation->outputs[i], place)) return true;
    return false;
}

/* The operation that waits for the copy that starts at `start`; until then nothing touches what is
 * copied to, nothing writes what is copied from, and no other copy takes the number. */
static int find_wait(const Program *program, int start, int end) {
    const Operation *copy = &program->operations[start];
    for (int o = start + 1; o < end; o++) {
        const Operation *operation = &program->operations[o];
        bool is_copy = operation->kind == OP_COPY_START || operation->kind == OP_COPY_WAIT;
        if (is_copy && operation->copy.id == copy->copy.id) {
            assert_int_equal(operation->kind, OP_COPY_WAIT);
            assert_true(same_place(operation->outputs[0], copy->outputs[0]));
            assert_true(same_place(operation->inputs[0], copy->inputs[0]));
            assert_int_equal(operation->copy.n, copy->copy.n);
            return o;
        }
        assert_false(writes(operation, copy->outputs[0]) || reads(operation, copy->outputs[0]));
        assert_false(writes(operation, copy->inputs[0]));
    }
    fail_msg("the copy started by operation %d is never waited for", start);
    return -1;
}

/* Returns how many copies a section has, and the fewest operations that run while one may. */
static int check_copies(const Program *program, SectionKind kind, int *least_between) {
    Section section = program->sections[kind];
    int copies = 0, waits = 0, end = section.first + section.count;
    *least_between = section.count;
    for (int o = section.first; o < end; o++) {
        const Operation *operation = &program->operations[o];
        waits += operation->kind == OP_COPY_WAIT;
        if (operation->kind != OP_COPY_START) continue;
        copies++;
        assert_true(program->buffers[operation->outputs[0].buffer].space !=
                    program->buffers[operation->inputs[0].buffer].space);
        int between = 0, wait = find_wait(program, o, end);
        for (int i = o; i < wait; i++)
            between += program->operations[i].kind != OP_COPY_START &&
                       program->operations[i].kind != OP_COPY_WAIT;
        if (between < *least_between) *least_between = between;
    }
    assert_int_equal(copies, waits);
    return copies;
}

/* Only copies reach host memory. */
static void assert_spaces(const Program *program) {
    for (int o = 0; o < program->operation_count; o++) {
        const Operation *operation = &program->operations[o];
        if (operation->kind == OP_COPY_START || operation->kind == OP_COPY_WAIT) continue;
        for (int b = 0; b < program->buffer_count; b++)
            if (program->buffers[b].space == SPACE_HOST)
                for (int i = 0; i < OPERATION_OUTPUTS; i++)
                    assert_true(operation->outputs[i].buffer != b &&
                                (i >= OPERATION_INPUTS || operation->inputs[i].buffer != b));
    }
}

static void test_copies_are_where_they_should_be(void **state) {
    (void)state;
    for (int what = OFFLOAD_NONE; what < OFFLOADS; what++) {
        Program program;
        int between;
        offload(&program, (Offload)what);
        assert_spaces(&program);
        /* Not those of the last layer and the one before, and no statistics; stored and fetched. */
        int copies = check_copies(&program, SECTION_MICRO_BATCH, &between);
        assert_int_equal(copies, what & OFFLOAD_ACTIVATIONS ? 2 * (LAYERS - 2) : 0);
        if (copies) assert_int_equal(between, 1); /* a layer's */
        copies = check_copies(&program, SECTION_UPDATE, &between);
        assert_int_equal(copies, what & OFFLOAD_STATE ? 4 * (LAYERS + MATRICES) : 0);
        assert_int_equal(program.operations[program.backward_begin].kind, OP_SWIGLU_BACKWARD);
        assert_int_equal(program.operations[program.backward_begin].layer, LAYERS - 1);
        assert_int_equal(program.sections[SECTION_MICRO_BATCH].count,
                         program.sections[SECTION_UPDATE].first);
        program_free(&program);
    }
}

static void test_slices_of_the_state(void **state) {
    (void)state;
    Program program;
    offload(&program, OFFLOAD_STATE);
    for (int o = 0; o < program.operation_count; o++) {
        const Operation *operation = &program.operations[o];
        if (operation->kind != OP_COPY_START) continue;
        int from = operation->inputs[0].buffer, to = operation->outputs[0].buffer;
        int host = program.buffers[from].space == SPACE_HOST ? from : to;
        int64_t elements = host == program.moment1    ? PARAMETERS
                           : host == program.absmax1  ? 4
                           : host == program.momentum ? ROWS * COLUMNS
                                                      : ROWS;
        assert_int_equal(operation->copy.n, elements);
    }
    program_free(&program);
}

/* A whole update hides each copy: only the first has none before it, and the last none behind it. */
static void test_copies_of_the_state_are_hidden(void **state) {
    (void)state;
    Program program;
    offload(&program, OFFLOAD_STATE);
    Section section = program.sections[SECTION_UPDATE];
    int exposed = 0, end = section.first + section.count;
    for (int o = section.first; o < end; o++) {
        if (program.operations[o].kind != OP_COPY_START) continue;
        int updates = 0, wait = find_wait(&program, o, end);
        for (int i = o; i < wait; i++)
            updates +=
                program.operations[i].kind == OP_ADAMW || program.operations[i].kind == OP_MUON_END;
        exposed += !updates;
    }
    assert_int_equal(exposed, 2 + 1); /* a moment and its absmax; a variance */
    program_free(&program);
}

static int64_t no_workspace(const Program *program, const Operation *operation, Error *error) {
    (void)program, (void)operation, (void)error;
    return 0;
}

static void test_a_space_each_has_its_arena(void **state) {
    (void)state;
    Error error;
    Program program;
    const Backend backend = {.name = "none", .workspace = no_workspace};
    offload(&program, OFFLOAD_ALL);
    assert_done(layout_program(&program, &backend, &error), error);
    int64_t kept = (LAYERS - 2) * WIDTH * 2;
    int64_t persistent = LAYERS * 1024 + 256 + 7424 + 512; /* momentum and variance in 256s */
    assert_int_equal(program.host_bytes, persistent + kept);
    int64_t shares = 0;
    for (int kind = 0; kind < BUFFER_KINDS; kind++) shares += program.kind_bytes[kind];
    assert_int_equal(shares, program.arena_bytes);
    assert_int_equal(program.kind_bytes[BUFFER_STATE], 0);
    program_free(&program);
}

static void test_too_many_copies_at_once_are_refused(void **state) {
    (void)state;
    Error error;
    Program program;
    write_program(&program, 80);
    assert_fails_with(offload_apply(&program, OFFLOAD_ACTIVATIONS, &error), error, "64 copies");
    program_free(&program);
}

static double seconds_of(const Program *program, double host_bandwidth, double *copying) {
    double kinds[OPERATION_KINDS] = {0}, sum = 0;
    const Device device = {.matmul_flops = 1e12,
                           .efficiency = 1,
                           .vector_flops = 1e12,
                           .bandwidth = 1e9,
                           .host_bandwidth = host_bandwidth};
    double seconds = section_seconds(program, SECTION_MICRO_BATCH, &device, kinds);
    for (int kind = 0; kind < OPERATION_KINDS; kind++) sum += kinds[kind];
    assert_true(fabs(sum / seconds - 1) < 1e-9);
    if (copying) *copying = kinds[OP_COPY_START] + kinds[OP_COPY_WAIT];
    return seconds;
}

static void test_copies_cost_what_is_not_hidden(void **state) {
    (void)state;
    Program plain, copying;
    double bytes = 2.0 * (LAYERS - 2) * WIDTH * 2, exposed;
    offload(&plain, OFFLOAD_NONE);
    offload(&copying, OFFLOAD_ACTIVATIONS);
    double alone = seconds_of(&plain, 1, NULL);
    /* Fast copies hide wholly. */
    assert_true(fabs(seconds_of(&copying, 1e12, &exposed) / alone - 1) < 1e-9);
    assert_true(exposed < 1e-9 * alone);
    /* Slow ones take their own time, with the first and the last layer's work around them. */
    double slow = seconds_of(&copying, 1e6, &exposed);
    assert_true(slow > bytes / 1e6 && slow < bytes / 1e6 + alone);
    assert_true(exposed > slow - alone - 1e-12);
    /* Where there is one memory, they read and write it. */
    double same = seconds_of(&copying, 0, &exposed);
    assert_true(fabs(exposed / (2 * bytes / 1e9) - 1) < 1e-9);
    assert_true(fabs(same / (alone + exposed) - 1) < 1e-9);
    program_free(&plain);
    program_free(&copying);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_are_where_they_should_be),
        cmocka_unit_test(test_slices_of_the_state),
        cmocka_unit_test(test_copies_of_the_state_are_hidden),
        cmocka_unit_test(test_a_space_each_has_its_arena),
        cmocka_unit_test(test_too_many_copies_at_once_are_refused),
        cmocka_unit_test(test_copies_cost_what_is_not_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
