/* Attention's backward on the GPU, behind its forward, against the CPU's. */
#include "trial.h"

#include <math.h>
#include <string.h>

/* Weights and gradients of scores are rounded to bf16 before they are summed: half of 2^-8 each, of terms
 * that partly cancel. */
static void close_to(Trial *trial, int buffer) {
    if (trial->program.storage == DTYPE_BF16)
        trial_close_to(trial, buffer, 0x1p-7, 0x1p-6);
    else
        trial_close_to(trial, buffer, 2e-5, 2e-5);
}

typedef struct Backward {
    int qkv, dout, dqkv;
} Backward;

static Backward add_backward(Trial *trial, AttentionShape shape, int64_t document_length) {
    const int64_t N = shape.B * shape.T, width = (shape.H + 2 * shape.KV) * shape.D;
    const Dtype storage = trial->program.storage;
    shape.scale = 1 / sqrtf((float)shape.D);
    const Backward backward = {trial_random(trial, storage, N * width, 1),
                               trial_random(trial, storage, N * shape.H * shape.D, 1),
                               trial_output(trial, storage, N * width)};
    const Operand out = whole(trial_output(trial, storage, N * shape.H * shape.D));
    const Operand lse = whole(trial_output(trial, DTYPE_F32, N * shape.H));
    const Operand document_start = whole(trial_documents(trial, shape.B, shape.T, document_length));

    Operation *operation = trial_operation(trial, OP_ATTENTION_FORWARD);
    operation->outputs[0] = out, operation->outputs[1] = lse;
    operation->inputs[0] = whole(backward.qkv), operation->inputs[1] = document_start;
    operation->attention = shape;

    operation = trial_operation(trial, OP_ATTENTION_BACKWARD);
    operation->outputs[0] = whole(backward.dqkv);
    operation->inputs[0] = whole(backward.dout);
    operation->inputs[1] = out, operation->inputs[2] = lse;
    operation->inputs[3] = whole(backward.qkv), operation->inputs[4] = document_start;
    operation->attention = shape;
    return backward;
}

static void check(Dtype storage, AttentionShape shape, int64_t document_length) {
    Trial trial;
    trial_open(&trial, storage);
    const Backward backward = add_backward(&trial, shape, document_length);
    trial_run(&trial);
    close_to(&trial, backward.dqkv);
    trial_close(&trial);
}

/* Lengths around a tile's, every width that a tile is padded from, and heads that share keys. */
static void test_shapes(void **state) {
    (void)state;
    static const AttentionShape shapes[] = {
        {.B = 1, .T = 1, .H = 1, .KV = 1, .D = 64, .window = -1},
        {.B = 2, .T = 63, .H = 2, .KV = 1, .D = 16, .window = -1},
        {.B = 1, .T = 64, .H = 1, .KV = 1, .D = 40, .window = -1},
        {.B = 1, .T = 65, .H = 1, .KV = 1, .D = 64, .window = -1},
        {.B = 2, .T = 200, .H = 1, .KV = 1, .D = 128, .window = -1},
        {.B = 1, .T = 65, .H = 6, .KV = 2, .D = 112, .window = -1},
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check(storage, shapes[i], 0);
}

static void test_windows(void **state) {
    (void)state;
    static const int64_t windows[] = {0, 5, 63, 64, 65, 100, 199, 1000};
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
            check(
                storage,
                (AttentionShape){.B = 1, .T = 200, .H = 1, .KV = 1, .D = 64, .window = windows[i]},
                0);
}

static void test_documents(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 7, 64, 90};
    static const AttentionShape shapes[] = {
        {.B = 2, .T = 130, .H = 2, .KV = 1, .D = 16, .window = -1},
        {.B = 2, .T = 130, .H = 2, .KV = 1, .D = 16, .window = 70},
        {.B = 1, .T = 200, .H = 1, .KV = 1, .D = 128, .window = 100},
    };
    for (Dtype storage = DTYPE_F32; storage <= DTYPE_BF16; storage++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
                check(storage, shapes[i], lengths[j]);
}

/* The cost is proportional to what is in view: tiles that a block sees nothing of are not even multiplied
 * by 0, which would make NaN of their NaNs. Tokens `first`.. are filled with those; the gradients of
 * tokens kept.. must not change. */
static void check_unseen(int64_t window, int64_t document_length, int64_t first, int64_t kept) {
    enum { T = 256, COUNT = 128, KEPT = 64, D = 64, ROW = 3 * D };
    const AttentionShape shape = {.B = 1, .T = T, .H = 1, .KV = 1, .D = D, .window = window};
    Trial trial;
    trial_open(&trial, DTYPE_BF16);
    const Backward backward = add_backward(&trial, shape, document_length);
    trial_run(&trial);
    bf16 before[KEPT * ROW];
    memcpy(before, (bf16 *)trial.cuda[backward.dqkv] + kept * ROW, sizeof before);
    memset((bf16 *)trial_data(&trial, backward.qkv) + first * ROW, 0xff,
           COUNT * ROW * sizeof(bf16));
    memset((bf16 *)trial_data(&trial, backward.dout) + first * D, 0xff, COUNT * D * sizeof(bf16));
    trial_run(&trial);
    assert_memory_equal(before, (bf16 *)trial.cuda[backward.dqkv] + kept * ROW, sizeof before);
    trial_close(&trial);
}

static void test_unseen_tiles_are_skipped(void **state) {
    (void)state;
    check_unseen(64, 0, 0, 192);   /* keys before a window */
    check_unseen(-1, 148, 0, 192); /* keys before a document */
    check_unseen(64, 0, 128, 0);   /* queries behind a window */
    check_unseen(-1, 108, 128, 0); /* queries behind a document */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_unseen_tiles_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
