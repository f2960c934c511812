/* The gradient's norm within the rounding of a double sum; AdamW with the CPU's bits. */
#include "trial.h"

#include <math.h>

static void check_norm(int64_t n) {
    Trial trial;
    trial_open(&trial, DTYPE_BF16);
    trial.scalars.gradient_scale = 0.3f;
    int gradient = trial_random(&trial, DTYPE_F32, n, 1);
    int norm = trial_output(&trial, DTYPE_F32, 1);
    Operation *operation = trial_operation(&trial, OP_GRADIENT_NORM);
    operation->outputs[0] = whole(norm);
    operation->inputs[0] = whole(gradient);
    operation->elements.n = n;
    trial_run(&trial);
    trial_close_to(&trial, norm, 1.2e-7, 0); /* a unit in the last place of fp32 */
    trial_close(&trial);
}

static void test_norm(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 5, 1024, 3001};
    for (int i = 0; i < 4; i++) check_norm(sizes[i]);
}

typedef struct Case {
    Dtype storage;
    StateFormat format;
    int64_t n, step;
    float norm, clip_norm;
    bool no_working;
} Case;

static const Dtype moment_types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_U8};

/* Moments as they are after some steps: the second is never negative. */
static int moment(Trial *trial, const Case *c, bool is_signed) {
    if (c->format == STATE_8BIT) {
        uint8_t codes[5000];
        assert_in_range(c->n, 1, sizeof codes);
        for (int64_t i = 0; i < c->n; i++) codes[i] = (uint8_t)(i * 37 + is_signed);
        return trial_given(trial, DTYPE_U8, c->n, codes);
    }
    int buffer = trial_random(trial, moment_types[c->format], c->n, is_signed ? 0.1 : 0.01);
    for (int64_t i = 0; !is_signed && i < c->n; i++)
        if (c->format == STATE_BF16)
            ((bf16 *)trial_data(trial, buffer))[i] &= 0x7fff;
        else
            ((float *)trial_data(trial, buffer))[i] =
                fabsf(((float *)trial_data(trial, buffer))[i]);
    return buffer;
}

/* Largest magnitudes of the blocks; the first is of a block that is still zero. */
static int absmax(Trial *trial, const Case *c) {
    int buffer = trial_random(trial, DTYPE_F32, (c->n + STATE_BLOCK - 1) / STATE_BLOCK, 0.1);
    float *values = trial_data(trial, buffer);
    for (int64_t i = 0; i * STATE_BLOCK < c->n; i++) values[i] = i ? fabsf(values[i]) : 0;
    return buffer;
}

static void check_adamw(const Case *c) {
    Trial trial;
    trial_open(&trial, c->storage);
    trial.scalars = (StepScalars){
        .learning_rate = 3e-3f, .gradient_scale = 0.7f, .step = c->step, .seed = 0x123456789abcdef};
    Operation *operation = trial_operation(&trial, OP_ADAMW);
    operation->outputs[0] = whole(trial_random(&trial, DTYPE_F32, c->n, 1));
    if (!c->no_working) operation->outputs[1] = whole(trial_output(&trial, c->storage, c->n));
    operation->outputs[2] = whole(moment(&trial, c, true));
    operation->outputs[3] = whole(moment(&trial, c, false));
    if (c->format == STATE_8BIT) {
        operation->outputs[4] = whole(absmax(&trial, c));
        operation->outputs[5] = whole(absmax(&trial, c));
    }
    operation->outputs[6] = whole(trial_random(&trial, DTYPE_F32, c->n, 0.1));
    operation->inputs[0] = whole(trial_given(&trial, DTYPE_F32, 1, &c->norm));
    operation->adamw = (AdamwShape){.n = c->n,
                                    .rate = 0.75f,
                                    .format = c->format,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .epsilon = 1e-8f,
                                    .weight_decay = 0.1f,
                                    .clip_norm = c->clip_norm,
                                    .tensor = 3};
    trial_run(&trial);
    for (int buffer = 0; buffer < trial.program.buffer_count; buffer++) trial_same(&trial, buffer);
    if (!isfinite(c->norm)) /* all but the gradient stays, which was made last but one */
        for (int buffer = 0; buffer < trial.program.buffer_count - 2; buffer++)
            assert_memory_equal(trial.cuda[buffer], trial.start[buffer],
                                (size_t)trial.bytes[buffer]);
    trial_close(&trial);
}

static void for_each_format(Case c) {
    for (c.storage = DTYPE_F32; c.storage <= DTYPE_BF16; c.storage++)
        for (c.format = STATE_FP32; c.format <= STATE_8BIT; c.format++) check_adamw(&c);
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 7, 129, 256, 259, 4097};
    for (int i = 0; i < 6; i++) for_each_format((Case){.n = sizes[i], .step = 1, .norm = 1});
}

static void test_steps(void **state) {
    (void)state;
    for_each_format((Case){.n = 513, .step = 1000, .norm = 1});
    for_each_format((Case){.n = 513, .step = 1234567, .norm = 1});
}

static void test_clipping(void **state) {
    (void)state;
    for_each_format((Case){.n = 300, .step = 5, .norm = 2.5f, .clip_norm = 1});
    for_each_format((Case){.n = 300, .step = 5, .norm = 0.5f, .clip_norm = 1});
}

static void test_no_working_copy(void **state) {
    (void)state;
    for_each_format((Case){.n = 300, .step = 5, .norm = 1, .no_working = true});
}

static void test_not_finite(void **state) {
    (void)state;
    for_each_format((Case){.n = 300, .step = 5, .norm = NAN, .clip_norm = 1});
    for_each_format((Case){.n = 300, .step = 5, .norm = INFINITY});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_no_working_copy),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
