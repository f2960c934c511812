/* Both directions move rows and add them in the order of the tokens: the CPU's bits. */
#include "trial.h"

typedef struct Case {
    int64_t N, C, V;
} Case;

static void check(Dtype storage, Case c) {
    Trial trial;
    trial_open(&trial, storage);
    int tokens = trial_integers(&trial, c.N, (int32_t)c.V);
    int weight = trial_random(&trial, storage, c.V * c.C, 1);
    int out = trial_output(&trial, storage, c.N * c.C);
    int dweight = trial_random(&trial, DTYPE_F32, c.V * c.C, 1);
    int dout = trial_random(&trial, storage, c.N * c.C, 1);

    Operation *forward = trial_operation(&trial, OP_EMBEDDING_FORWARD);
    forward->outputs[0] = whole(out);
    forward->inputs[0] = whole(tokens), forward->inputs[1] = whole(weight);
    forward->embedding.N = c.N, forward->embedding.C = c.C, forward->embedding.V = c.V;
    Operation *backward = trial_operation(&trial, OP_EMBEDDING_BACKWARD);
    backward->outputs[0] = whole(dweight);
    backward->inputs[0] = whole(dout), backward->inputs[1] = whole(tokens);
    backward->embedding.N = c.N, backward->embedding.C = c.C, backward->embedding.V = c.V;

    trial_run(&trial);
    trial_same(&trial, out);
    trial_same(&trial, dweight);
    trial_close(&trial);
}

static void test_shapes(void **state) {
    (void)state;
    static const Case cases[] = {
        {1, 1, 1},     {5, 8, 3},     {9, 33, 40}, {64, 256, 5},
        {70, 2050, 3}, {2100, 20, 6}, /* several tiles of tokens, each token often in a row */
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(storage, cases[i]);
}

/* The token before the first: a row of zeros. */
static void test_no_token(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 8, 33, 300};
    static const int32_t ids[] = {-1, 2, -1};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (int i = 0; i < 4; i++) {
            const int64_t C = widths[i];
            Trial trial;
            trial_open(&trial, storage);
            int tokens = trial_given(&trial, DTYPE_I32, 3, ids);
            int weight = trial_random(&trial, storage, 3 * C, 1);
            int out = trial_output(&trial, storage, 3 * C);
            Operation *forward = trial_operation(&trial, OP_EMBEDDING_FORWARD);
            forward->outputs[0] = whole(out);
            forward->inputs[0] = whole(tokens), forward->inputs[1] = whole(weight);
            forward->embedding.N = 3, forward->embedding.C = C, forward->embedding.V = 3;
            trial_run(&trial);
            trial_same(&trial, out);
            trial_close(&trial);
        }
}

static void test_more_tokens_than_blocks(void **state) {
    (void)state;
    check(DTYPE_BF16, (Case){40, 3, 1100});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_no_token),
        cmocka_unit_test(test_more_tokens_than_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
