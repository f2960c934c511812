#include "trial.h"

typedef struct Case {
    int64_t N, T, H, KV, D, position;
    bool branches, values;
} Case;

/* Head dimensions that are a few vectors and that are not, the widest, fewer key heads, rows of few tokens,
 * layers with value embeddings and without, heads for more warps than a block has. */
static const Case cases[] = {
    {.N = 1, .T = 1, .H = 1, .KV = 1, .D = 2, .values = true},
    {.N = 6, .T = 3, .H = 3, .KV = 1, .D = 8, .values = true},
    {.N = 6, .T = 3, .H = 4, .KV = 2, .D = 10},
    {.N = 10, .T = 5, .H = 2, .KV = 2, .D = 64, .values = true},
    {.N = 4, .T = 4, .H = 4, .KV = 2, .D = 90, .position = 3, .branches = true, .values = true},
    {.N = 5, .T = 5, .H = 6, .KV = 2, .D = 128, .position = 7, .branches = true},
    {.N = 2, .T = 1, .H = 30, .KV = 10, .D = 128, .values = true},
    {.N = 3, .T = 3, .H = 2, .KV = 1, .D = 256, .position = 1, .values = true},
};

enum { TOKENS = 3 }; /* of the vocabulary: they repeat */

static double rounding(Dtype storage) {
    return storage == DTYPE_BF16 ? 0x1p-7 : 1e-5;
}

static QkvShape shape_of(const Case *c) {
    return (QkvShape){c->N, c->T, c->H, c->KV, c->D, 1.1920929e-7f, 1.2f};
}

/* tokens, values and gates at inputs[first].. */
static void add_values(Trial *trial, Operation *operation, int first, Dtype storage,
                       const Case *c) {
    if (!c->values) return;
    operation->inputs[first] = whole(trial_integers(trial, c->N, TOKENS));
    operation->inputs[first + 1] = whole(trial_random(trial, storage, TOKENS * c->KV * c->D, 1));
    operation->inputs[first + 2] = whole(trial_random(trial, DTYPE_F32, c->N * c->KV, 1));
}

/* Branches of two tokens. */
static Operand branches_of(Trial *trial, const Case *c) {
    if (!c->branches) return operand_none;
    int branches = trial_integers(trial, c->N, 1);
    int32_t *start = trial_data(trial, branches);
    for (int64_t t = 0; t < c->N; t++) start[t] = (int32_t)(t / 2 * 2);
    return whole(branches);
}

static void check_forward(Dtype storage, const Case *c, bool in_place) {
    const int64_t elements = c->N * (c->H + 2 * c->KV) * c->D;
    Trial trial;
    trial_open(&trial, storage);
    trial.scalars.position = c->position;
    int projected = trial_random(&trial, storage, elements, 1);
    int cos_sin = trial_random(&trial, DTYPE_F32, (c->position + c->T) * c->D, 1);
    int out = in_place ? projected : trial_output(&trial, storage, elements);
    int rstd = trial_output(&trial, DTYPE_F32, c->N * (c->H + c->KV));
    Operation *operation = trial_operation(&trial, OP_QKV_FORWARD);
    operation->outputs[0] = whole(out), operation->outputs[1] = whole(rstd);
    operation->inputs[0] = whole(projected), operation->inputs[1] = whole(cos_sin);
    operation->inputs[2] = branches_of(&trial, c);
    add_values(&trial, operation, 3, storage, c);
    operation->qkv = shape_of(c);
    trial_run(&trial);
    trial_close_to(&trial, out, rounding(storage), 1e-5);
    trial_close_to(&trial, rstd, 2e-6, 0);
    trial_close(&trial);
}

static void check_backward(Dtype storage, const Case *c, bool in_place) {
    const int64_t elements = c->N * (c->H + 2 * c->KV) * c->D, values = c->N * c->KV;
    Trial trial;
    trial_open(&trial, storage);
    int dqkv = trial_random(&trial, storage, elements, 1);
    int qkv = trial_random(&trial, storage, elements, 1);
    int rstd = trial_random(&trial, DTYPE_F32, c->N * (c->H + c->KV), 1);
    int cos_sin = trial_random(&trial, DTYPE_F32, c->T * c->D, 1);
    int dprojected = in_place ? dqkv : trial_output(&trial, storage, elements);
    int dvalues = c->values ? trial_output(&trial, storage, values * c->D) : -1;
    int dgates = c->values ? trial_output(&trial, DTYPE_F32, values) : -1;
    Operation *operation = trial_operation(&trial, OP_QKV_BACKWARD);
    operation->outputs[0] = whole(dprojected);
    operation->outputs[1] = whole(dvalues), operation->outputs[2] = whole(dgates);
    operation->inputs[0] = whole(dqkv), operation->inputs[1] = whole(qkv);
    operation->inputs[2] = whole(rstd), operation->inputs[3] = whole(cos_sin);
    add_values(&trial, operation, 4, storage, c);
    operation->qkv = shape_of(c);
    trial_run(&trial);
    trial_close_to(&trial, dprojected, rounding(storage), 2e-5);
    if (c->values) {
        trial_close_to(&trial, dvalues, rounding(storage), 0);
        trial_close_to(&trial, dgates, 1e-5, 2e-5);
    }
    trial_close(&trial);
}

static void test_forward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            check_forward(storage, &cases[i], false);
            check_forward(storage, &cases[i], true);
        }
}

static void test_backward(void **state) {
    (void)state;
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            check_backward(storage, &cases[i], false);
            check_backward(storage, &cases[i], true);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward),
                                       cmocka_unit_test(test_backward)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
