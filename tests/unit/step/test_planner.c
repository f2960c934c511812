/* How much the planner has to write down to find out what fits. */
#include "step/planner.h"

#include "support.h"

enum { ROWS = 64, TOKENS = 128, WIDTH = 1024, STATES = 3 };

static int64_t no_workspace(const Program *program, const Operation *operation, Error *error) {
    (void)program, (void)operation, (void)error;
    return 0;
}

static void nothing_beside(const Program *program, int64_t *device_bytes, int64_t *pinned_bytes) {
    (void)program;
    *device_bytes = *pinned_bytes = 0;
}

static const Backend backend = {.workspace = no_workspace, .beside = nothing_beside};

/* One layer that keeps an activation for its backward. */
static bool write_counted(Program *program, const PlanChoice *choice, void *context, Error *error) {
    *(int *)context += 1;
    program_init(program, DTYPE_F32);
    program->B = choice->micro_batch, program->T = TOKENS;
    int64_t N = choice->micro_batch * TOKENS;
    int master = program_buffer(program, BUFFER_MASTER, DTYPE_F32, WIDTH, "master");
    int x = program_buffer(program, BUFFER_ACTIVATION, DTYPE_F32, N * WIDTH, "x");
    int dx = program_buffer(program, BUFFER_ACTIVATION_GRADIENT, DTYPE_F32, N * WIDTH, "dx");
    program_begin_section(program, SECTION_MICRO_BATCH);
    Operation *forward = program_add(program, OP_RELU2_FORWARD, 0);
    forward->outputs[0] = whole(x), forward->inputs[0] = whole(master);
    forward->elements.n = N * WIDTH;
    program->backward_begin = program->operation_count;
    Operation *backward = program_add(program, OP_RELU2_BACKWARD, 0);
    backward->outputs[0] = whole(dx);
    backward->inputs[0] = whole(master), backward->inputs[1] = whole(x);
    backward->elements.n = N * WIDTH;
    return program_finish(program, error);
}

static PlanRequest request_of(Device *device, int *written) {
    Error error;
    assert_done(device_find(device, "h100", DTYPE_F32, &error), error);
    return (PlanRequest){.backend = &backend,
                         .device = device,
                         .memory = 1 << 19,
                         .beside = 3 << 20,
                         .host_memory = INT64_MAX,
                         .rows = ROWS,
                         .sequence_length = TOKENS,
                         .recompute = -1,
                         .offload = -1,
                         .state = -1,
                         .write = write_counted,
                         .context = written};
}

/* That nothing fits shows on the smallest micro-batch: none of the larger ones is written, and one choice
 * twice, to be laid out. */
static void test_what_cannot_fit_is_not_tried(void **state) {
    (void)state;
    Error error;
    Device device;
    Plan plan;
    Program program;
    int written = 0;
    PlanRequest request = request_of(&device, &written);
    assert_fails_with(plan_step(&request, &plan, &program, &error), error,
                      "does not fit in 3.50 MiB: the smallest plan takes 1.00 MiB, and 3.00 MiB is "
                      "kept for the GPU's driver and libraries. Give --memory 5M, or");
    assert_true(written > 0 && written <= STATES * RECOMPUTE_LEVELS * OFFLOADS + 1);
}

static bool write_nothing(Program *program, const PlanChoice *choice, void *context, Error *error) {
    (void)choice, (void)context;
    program_init(program, DTYPE_F32);
    return fail(error, "no program today");
}

/* What fails for another reason says that alone: more memory would not help. */
static void test_other_failures_do_not_speak_of_memory(void **state) {
    (void)state;
    Error error;
    Device device;
    Plan plan;
    Program program;
    PlanRequest request = request_of(&device, NULL);
    request.write = write_nothing;
    assert_false(plan_step(&request, &plan, &program, &error));
    assert_string_equal(error.message, "no program today");
}

/* Offload takes half of it to the host. */
static bool write_movable(Program *program, const PlanChoice *choice, void *context, Error *error) {
    if (!write_counted(program, choice, context, error)) return false;
    if (choice->offload != OFFLOAD_NONE)
        program->buffers[program->operations[0].outputs[0].buffer].space = SPACE_HOST;
    return true;
}

/* What host memory has no room for is no plan: without it more of the device is needed; and where it has to
 * be, that is what is said. */
static void test_offload_must_fit_host_memory(void **state) {
    (void)state;
    Error error;
    Device device;
    Plan plan;
    Program program;
    int written = 0;
    PlanRequest request = request_of(&device, &written);
    request.write = write_movable, request.memory += 1 << 18;
    assert_done(plan_step(&request, &plan, &program, &error), error);
    assert_true(plan.choice.offload != OFFLOAD_NONE);
    program_free(&program);
    request.host_memory = 1;
    assert_fails_with(plan_step(&request, &plan, &program, &error), error,
                      "the smallest plan takes 1.00 MiB");
    request.offload = OFFLOAD_STATE;
    assert_fails_with(plan_step(&request, &plan, &program, &error), error,
                      "what --offload state moves takes more than the 1 byte of host memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_cannot_fit_is_not_tried),
        cmocka_unit_test(test_offload_must_fit_host_memory),
        cmocka_unit_test(test_other_failures_do_not_speak_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
