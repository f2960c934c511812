#include "trial.h"

typedef struct Case {
    int64_t N, T, heads, rotated, D, position;
    bool in_place;
    int64_t branch; /* length of the branches; 0: none */
} Case;

static const Case cases[] = {
    {.N = 1, .T = 1, .heads = 1, .rotated = 1, .D = 2},
    {.N = 6, .T = 3, .heads = 5, .rotated = 3, .D = 64},
    {.N = 6, .T = 3, .heads = 5, .rotated = 3, .D = 64, .in_place = true},
    {.N = 5, .T = 5, .heads = 3, .rotated = 2, .D = 10, .position = 7},
    {.N = 5, .T = 5, .heads = 3, .rotated = 2, .D = 10, .position = 7, .in_place = true},
    {.N = 2, .T = 2, .heads = 50, .rotated = 40, .D = 112}, /* more than a block has threads */
    {.N = 3, .T = 3, .heads = 4, .rotated = 0, .D = 8},
    {.N = 11, .T = 11, .heads = 3, .rotated = 2, .D = 16, .position = 7, .branch = 4},
};

static void check(Dtype storage, OperationKind kind, const Case *c) {
    Trial trial;
    const int64_t elements = c->N * c->heads * c->D;
    trial_open(&trial, storage);
    trial.scalars.position = c->position;
    int x = trial_random(&trial, storage, elements, 1);
    int cos_sin = trial_random(&trial, DTYPE_F32, (c->position + c->T) * c->D, 1);
    int out = c->in_place ? x : trial_output(&trial, storage, elements);
    Operation *operation = trial_operation(&trial, kind);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(x), operation->inputs[1] = whole(cos_sin);
    operation->inputs[2] = operand_none;
    if (kind == OP_ROPE_FORWARD)
        operation->inputs[2] = whole(trial_documents(&trial, 1, c->N, c->branch));
    operation->rope.N = c->N, operation->rope.T = c->T, operation->rope.heads = c->heads;
    operation->rope.rotated = c->rotated, operation->rope.D = c->D;
    trial_run(&trial);
    trial_close_to(&trial, out, storage == DTYPE_BF16 ? 0x1p-7 : 1e-6, 1e-6);
    trial_close(&trial);
}

static void test_both_directions(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            check(storage, OP_ROPE_FORWARD, &cases[i]);
            check(storage, OP_ROPE_BACKWARD, &cases[i]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_directions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
