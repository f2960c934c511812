/* Attention's forward and its decoding on the GPU against the CPU's. */
#include "cuda/attention_forward.h"
#include "cuda/workspace.h"
#include "trial.h"

#include <math.h>
#include <string.h>

/* Weights are rounded to bf16 before they multiply values: by half of 2^-8 each. */
static double out_rounding(Dtype storage) {
    return storage == DTYPE_BF16 ? 0x1p-7 : 2e-5;
}

static const double lse_rounding = 2e-5;

typedef struct Forward {
    int qkv, out, lse;
} Forward;

static Forward add_forward(Trial *trial, AttentionShape shape, int64_t document_length) {
    const int64_t N = shape.B * shape.T;
    const Dtype storage = trial->program.storage;
    shape.scale = 1 / sqrtf((float)shape.D);
    Forward forward = {trial_random(trial, storage, N * (shape.H + 2 * shape.KV) * shape.D, 1),
                       trial_output(trial, storage, N * shape.H * shape.D),
                       trial_output(trial, DTYPE_F32, N * shape.H)};
    const int document_start = trial_documents(trial, shape.B, shape.T, document_length);
    Operation *operation = trial_operation(trial, OP_ATTENTION_FORWARD);
    operation->outputs[0] = whole(forward.out), operation->outputs[1] = whole(forward.lse);
    operation->inputs[0] = whole(forward.qkv), operation->inputs[1] = whole(document_start);
    operation->attention = shape;
    return forward;
}

static void check_forward(Dtype storage, AttentionShape shape, int64_t document_length) {
    Trial trial;
    trial_open(&trial, storage);
    const Forward forward = add_forward(&trial, shape, document_length);
    trial_run(&trial);
    trial_close_to(&trial, forward.out, out_rounding(storage), out_rounding(storage));
    trial_close_to(&trial, forward.lse, lse_rounding, lse_rounding);
    trial_close(&trial);
}

/* Lengths around a tile's, and every width that a tile is padded from. */
static void test_forward(void **state) {
    (void)state;
    static const AttentionShape shapes[] = {
        {.B = 1, .T = 1, .H = 1, .KV = 1, .D = 64, .window = -1},
        {.B = 2, .T = 63, .H = 2, .KV = 1, .D = 16, .window = -1},
        {.B = 1, .T = 64, .H = 1, .KV = 1, .D = 40, .window = -1},
        {.B = 1, .T = 65, .H = 1, .KV = 1, .D = 64, .window = -1},
        {.B = 1, .T = 130, .H = 1, .KV = 1, .D = 128, .window = -1},
        {.B = 1, .T = 65, .H = 6, .KV = 2, .D = 112, .window = -1},
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            check_forward(storage, shapes[i], 0);
}

/* Enough for a few tiles in bf16, and for a few rounds of 32 keys in fp32, which is slow here. */
static int64_t long_row(Dtype storage) {
    return storage == DTYPE_BF16 ? 200 : 70;
}

static void test_windows(void **state) {
    (void)state;
    static const int64_t windows[] = {0, 5, 32, 63, 64, 69, 100, 199, 1000};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
            const AttentionShape shape = {
                .B = 1, .T = long_row(storage), .H = 1, .KV = 1, .D = 16, .window = windows[i]};
            check_forward(storage, shape, 0);
        }
}

static void test_documents(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 7, 64, 90};
    static const int64_t windows[] = {-1, 60};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (size_t j = 0; j < sizeof windows / sizeof *windows; j++) {
                const AttentionShape shape = {
                    .B = 2, .T = long_row(storage), .H = 1, .KV = 1, .D = 8, .window = windows[j]};
                check_forward(storage, shape, lengths[i]);
            }
}

/* Scores of hundreds, of either sign: the running softmax changes its reference again and again. */
static void test_large_scores(void **state) {
    (void)state;
    const AttentionShape shape = {.B = 1, .T = 200, .H = 1, .KV = 1, .D = 64, .window = -1};
    Trial trial;
    trial_open(&trial, DTYPE_BF16);
    const Forward forward = add_forward(&trial, shape, 0);
    bf16 *qkv = trial_data(&trial, forward.qkv);
    for (int64_t i = 0; i < shape.T * 3 * shape.D; i++)
        if (i % (3 * shape.D) < 2 * shape.D) qkv[i] = bf16_from_float(8 * bf16_to_float(qkv[i]));
    trial_run(&trial);
    trial_close_to(&trial, forward.out, out_rounding(DTYPE_BF16), out_rounding(DTYPE_BF16));
    trial_close_to(&trial, forward.lse, lse_rounding, lse_rounding);
    trial_close(&trial);
}

/* The cost is proportional to what is in view: a tile of keys that none of a tile's queries sees is not
 * even multiplied by 0, which would make NaN of its NaNs. */
static void check_unseen(int64_t window, int64_t document_length) {
    enum { T = 4 * FORWARD_TILE, D = 64, FROM = T - FORWARD_TILE, UNSEEN = FROM - FORWARD_TILE };
    const AttentionShape shape = {.B = 1, .T = T, .H = 1, .KV = 1, .D = D, .window = window};
    Trial trial;
    trial_open(&trial, DTYPE_BF16);
    const Forward forward = add_forward(&trial, shape, document_length);
    trial_run(&trial);
    const size_t bytes = (size_t)(T - FROM) * D * sizeof(bf16);
    bf16 *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, (bf16 *)trial.cuda[forward.out] + FROM * D, bytes);
    memset(trial_data(&trial, forward.qkv), 0xff, UNSEEN * 3 * D * sizeof(bf16));
    trial_run(&trial);
    assert_memory_equal(before, (bf16 *)trial.cuda[forward.out] + FROM * D, bytes);
    free(before);
    trial_close(&trial);
}

static void test_unseen_tiles_are_skipped(void **state) {
    (void)state;
    check_unseen(FORWARD_TILE, 0);
    check_unseen(-1, 2 * FORWARD_TILE + 20);
}

/* branches: where each begins, in order, if there are any. */
static void check_decode(Dtype storage, AttentionShape shape, int64_t position,
                         const int32_t *branches) {
    const int64_t row = shape.KV * shape.D, capacity = position + shape.T + 3;
    Trial trial;
    trial_open(&trial, storage);
    shape.scale = 1 / sqrtf((float)shape.D);
    trial.scalars.position = position;
    int qkv = trial_random(&trial, storage, shape.T * (shape.H * shape.D + 2 * row), 1);
    int keys = trial_random(&trial, storage, capacity * row, 1);
    int values = trial_random(&trial, storage, capacity * row, 1);
    int out = trial_output(&trial, storage, shape.T * shape.H * shape.D);
    Operation *operation = trial_operation(&trial, OP_ATTENTION_DECODE);
    operation->outputs[0] = whole(out);
    operation->outputs[1] = whole(keys), operation->outputs[2] = whole(values);
    operation->inputs[0] = whole(qkv);
    operation->inputs[1] =
        branches ? whole(trial_given(&trial, DTYPE_I32, shape.T, branches)) : operand_none;
    operation->attention = shape;
    trial_run(&trial);
    trial_close_to(&trial, out, out_rounding(storage), out_rounding(storage));
    trial_same(&trial, keys);
    trial_same(&trial, values);
    trial_close(&trial);
}

static void test_decode(void **state) {
    (void)state;
    static const struct {
        AttentionShape shape;
        int64_t position;
    } cases[] = {
        {{.B = 1, .T = 1, .H = 1, .KV = 1, .D = 64, .window = -1}, 0},
        {{.B = 1, .T = 1, .H = 2, .KV = 1, .D = 128, .window = -1}, 70},
        {{.B = 1, .T = 9, .H = 4, .KV = 2, .D = 16, .window = -1}, 0},
        {{.B = 1, .T = 3, .H = 2, .KV = 2, .D = 40, .window = -1}, 30},
        {{.B = 1, .T = 5, .H = 2, .KV = 1, .D = 112, .window = 20}, 33},
        {{.B = 1, .T = 5, .H = 1, .KV = 1, .D = 8, .window = 0}, 2},
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            check_decode(storage, cases[i].shape, cases[i].position, NULL);
}

/* Branches of one token and of many, whose windows reach into the cache or not that far; no cache at all. */
static void test_branches(void **state) {
    (void)state;
    static const int32_t starts[] = {0, 0, 0, 3, 4, 4, 4, 4, 8, 8, 10};
    static const struct {
        AttentionShape shape;
        int64_t position;
    } cases[] = {
        {{.B = 1, .T = 11, .H = 2, .KV = 1, .D = 64, .window = -1}, 0},
        {{.B = 1, .T = 11, .H = 4, .KV = 2, .D = 128, .window = -1}, 70},
        {{.B = 1, .T = 11, .H = 3, .KV = 3, .D = 40, .window = 2}, 30},
        {{.B = 1, .T = 11, .H = 2, .KV = 1, .D = 24, .window = 20}, 33},
        {{.B = 1, .T = 11, .H = 1, .KV = 1, .D = 8, .window = 0}, 2},
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            check_decode(storage, cases[i].shape, cases[i].position, starts);
}

static void test_head_dimensions_without_a_kernel(void **state) {
    (void)state;
    Error error;
    Program program;
    program_init(&program, DTYPE_BF16);
    Operation operation = {.kind = OP_ATTENTION_FORWARD,
                           .attention = {.B = 1, .T = 1, .H = 1, .KV = 1, .window = -1}};
    for (int64_t D = 2; D <= 256; D += 2) {
        operation.attention.D = D;
        const bool has_kernel = D % 8 == 0 && D <= 128;
        assert_int_equal(cuda_attention_workspace(&program, &operation, &error) >= 0, has_kernel);
    }
    assert_non_null(strstr(error.message, "256"));
    assert_non_null(strstr(error.message, "--device cpu"));
    program_free(&program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_large_scores),
        cmocka_unit_test(test_unseen_tiles_are_skipped),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_head_dimensions_without_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
