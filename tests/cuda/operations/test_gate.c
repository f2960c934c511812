#include "trial.h"

/* Those of smear and of value embeddings, channels that are all of a row, rows that are not aligned, more
 * weights than a block has threads, several blocks. */
static const GateShape cases[] = {
    {.N = 1, .C = 24, .gates = 1, .channels = 24, .factor = 1},
    {.N = 70, .C = 40, .gates = 1, .channels = 24, .factor = 1},
    {.N = 9, .C = 64, .gates = 3, .channels = 12, .factor = 3},
    {.N = 70, .C = 33, .gates = 12, .channels = 12, .factor = 3},
    {.N = 5, .C = 30, .gates = 12, .channels = 24, .factor = 2},
    {.N = 3, .C = 1, .gates = 2, .channels = 1, .factor = 1},
};

static void check(Dtype storage, GateShape shape) {
    const int64_t N = shape.N, weights = shape.gates * shape.channels;
    Trial trial;
    trial_open(&trial, storage);
    int x = trial_random(&trial, storage, N * shape.C, 1);
    int weight = trial_random(&trial, storage, weights, 0.5);
    int out = trial_output(&trial, DTYPE_F32, N * shape.gates);
    int dgates = trial_random(&trial, DTYPE_F32, N * shape.gates, 1);
    int gates = trial_random(&trial, DTYPE_F32, N * shape.gates, 0.5);
    int dx = trial_random(&trial, storage, N * shape.C, 1);
    int dweight = trial_random(&trial, DTYPE_F32, weights, 1);

    Operation *forward = trial_operation(&trial, OP_GATE_FORWARD);
    forward->outputs[0] = whole(out);
    forward->inputs[0] = whole(x), forward->inputs[1] = whole(weight);
    forward->gate = shape;
    Operation *backward = trial_operation(&trial, OP_GATE_BACKWARD);
    backward->outputs[0] = whole(dx), backward->outputs[1] = whole(dweight);
    backward->inputs[0] = whole(dgates), backward->inputs[1] = whole(gates);
    backward->inputs[2] = whole(x), backward->inputs[3] = whole(weight);
    backward->gate = shape;

    trial_run(&trial);
    trial_close_to(&trial, out, 5e-6, 0);
    trial_close_to(&trial, dx, storage == DTYPE_BF16 ? 0x1p-7 : 1e-5, 1e-5);
    trial_close_to(&trial, dweight, 1e-5, 1e-4);
    trial_close(&trial);
}

static void test_shapes(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(storage, cases[i]);
}

/* One more than the blocks take 32 at a time: the last blocks have none. */
static void test_blocks_without_tokens(void **state) {
    (void)state;
    check(DTYPE_F32, (GateShape){.N = 32769, .C = 2, .gates = 1, .channels = 2, .factor = 1});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_blocks_without_tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
