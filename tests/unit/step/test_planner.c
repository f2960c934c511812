/* How much the planner has to write down to find out what fits. */
#include "step/planner.h"

#include "support.h"

enum { ROWS = 64, TOKENS = 128, WIDTH = 1024, STATES = 3 };

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

/* That nothing fits shows on the smallest micro-batch: none of the larger ones is written. */
static void test_what_cannot_fit_is_not_tried(void **state) {
    (void)state;
    Error error;
    Device device;
    Plan plan;
    Program program;
    int written = 0;
    assert_done(device_find(&device, "h100", DTYPE_F32, &error), error);
    PlanRequest request = {.device = &device,
                           .memory = 1 << 19,
                           .host_memory = INT64_MAX,
                           .rows = ROWS,
                           .sequence_length = TOKENS,
                           .recompute = -1,
                           .offload = -1,
                           .state = -1,
                           .write = write_counted,
                           .context = &written};
    assert_fails_with(plan_step(&request, &plan, &program, &error), error,
                      "the smallest plan takes 1.00 MiB and 512.00 KiB is available");
    assert_true(written > 0 && written <= STATES * (1 + RECOMPUTE_LEVELS * OFFLOADS));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_cannot_fit_is_not_tried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
