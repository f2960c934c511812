/* AdamW against torch.optim.AdamW and a double-precision reference; the reduced formats of the
 * moments against numeric/state.h bit for bit; and the same bits from every instance. */
#include "kernel_test.h"

enum { STEPS = 4 };

typedef struct Case {
    const CpuKernels *kernels;
    StateFormat format;
    int64_t n;
    Array start, gradients; /* [n], [STEPS,n] */
    float *gradient;        /* [n], of the step at hand */
    Array master, working;
    void *moment1, *moment2;
    float *absmax1, *absmax2;
} Case;

static AdamwArguments arguments_of(const Case *c, int64_t step) {
    return (AdamwArguments){.master = c->master.data,
                            .working = c->working.data,
                            .gradient = c->gradient,
                            .moment1 = c->moment1,
                            .moment2 = c->moment2,
                            .absmax1 = c->absmax1,
                            .absmax2 = c->absmax2,
                            .n = c->n,
                            .format = c->format,
                            .learning_rate = 0.01f,
                            .beta1 = 0.9f,
                            .beta2 = 0.95f,
                            .epsilon = 1e-8f,
                            .weight_decay = 0.1f,
                            .gradient_scale = 0.5f,
                            .step = step,
                            .seed = 0x123456789abcdefu,
                            .tensor = 5};
}

/* One step, which must leave a zero gradient. */
static void take_step(Case *c, int64_t step) {
    size_t bytes = (size_t)c->n * sizeof *c->gradient;
    memcpy(c->gradient, (const float *)c->gradients.data + (step - 1) * c->n, bytes);
    AdamwArguments arguments = arguments_of(c, step);
    c->kernels->adamw(&arguments);
    for (int64_t i = 0; i < c->n; i++) assert_true(c->gradient[i] == 0);
}

static int64_t blocks_of(int64_t n) {
    return (n + STATE_BLOCK - 1) / STATE_BLOCK;
}

static size_t moment_bytes(const Case *c) {
    static const size_t sizes[] = {[STATE_FP32] = 4, [STATE_BF16] = 2, [STATE_8BIT] = 1};
    return (size_t)c->n * sizes[c->format];
}

static Case make_case(const CpuKernels *kernels, StateFormat format, int64_t n) {
    Case c = {.kernels = kernels, .format = format, .n = n};
    c.start = array_random(DTYPE_F32, n, 1);
    c.gradients = array_random(DTYPE_F32, STEPS * n, 1);
    for (int64_t i = 0; i < STEPS * n; i += 3) /* gradients of many sizes, and none */
        array_set(&c.gradients, i, c.gradients.exact[i] * (i % 2 ? 1e-5 : i % 5 ? 1e3 : 0));
    c.gradient = keep((size_t)n * sizeof *c.gradient);
    c.master = array_of(DTYPE_F32, n, 0);
    c.working = array_of(kernels->storage, n, 0);
    c.moment1 = keep(moment_bytes(&c));
    c.moment2 = keep(moment_bytes(&c));
    c.absmax1 = keep((size_t)blocks_of(n) * sizeof(float));
    c.absmax2 = keep((size_t)blocks_of(n) * sizeof(float));
    return c;
}

/* As training begins: zero moments, in the 8-bit format too (absmax 0). */
static void reset(Case *c) {
    memcpy(c->master.data, c->start.data, array_bytes(&c->start));
    memset(c->moment1, 0, moment_bytes(c));
    memset(c->moment2, 0, moment_bytes(c));
    memset(c->absmax1, 0, (size_t)blocks_of(c->n) * sizeof(float));
    memset(c->absmax2, 0, (size_t)blocks_of(c->n) * sizeof(float));
}

static uint64_t run(void *context) {
    Case *c = context;
    reset(c);
    for (int64_t step = 1; step <= STEPS; step++) take_step(c, step);
    uint64_t hash = array_hash(0, &c->master);
    hash = hash_bytes(hash_bytes(hash, c->moment1, moment_bytes(c)), c->moment2, moment_bytes(c));
    hash = hash_bytes(hash, c->absmax1, (size_t)blocks_of(c->n) * sizeof(float));
    return hash_bytes(hash, c->absmax2, (size_t)blocks_of(c->n) * sizeof(float));
}

/* master.exact after STEPS steps with fp32 moments */
static void reference(Case *c) {
    AdamwArguments a = arguments_of(c, 1);
    double beta1 = (double)a.beta1, beta2 = (double)a.beta2, rate = (double)a.learning_rate;
    for (int64_t i = 0; i < c->n; i++) {
        double p = c->start.exact[i], m = 0, v = 0;
        for (int step = 1; step <= STEPS; step++) {
            double g = c->gradients.exact[(step - 1) * c->n + i] * (double)a.gradient_scale;
            m += (g - m) * (1 - beta1);
            v = beta2 * v + (1 - beta2) * g * g;
            p -= rate * (double)a.weight_decay * p;
            p -= rate * (m / (1 - pow(beta1, step))) /
                 (sqrt(v / (1 - pow(beta2, step))) + (double)a.epsilon);
        }
        c->master.exact[i] = p;
    }
}

static const int64_t sizes[] = {1, 7, 255, 256, 257, 4097};

static void check_reference(const CpuKernels *kernels) {
    for (int s = 0; s < 6; s++) {
        Case c = make_case(kernels, STATE_FP32, sizes[s]);
        same_for_all_threads(run, &c);
        reference(&c);
        array_check("master", &c.master, 1e-6, 1e-6);
        array_check_working(&c.working, &c.master);
        release_arrays();
    }
}

static void test_reference(void **state) {
    (void)state;
    for_each_instance(check_reference);
}

/* From torch.optim.AdamW in float64 with lr 0.01, betas 0.9 and 0.95, eps 1e-8, weight decay
 * 0.1. */
static void check_torch(const CpuKernels *kernels) {
    static const double start[4] = {0.5, -1.25, 3, 1e-3};
    static const double gradients[STEPS * 4] = {0.1,  -2,  0, 1e-6, 0.3,  1.5,   0.25, -1e-6,
                                                -0.2, 0.5, 0, 2e-6, 0.05, -0.75, -4,   0};
    static const double after[4] = {0.473516593134, -1.23351206858, 2.98024199444,
                                    -0.0172867379952};
    Case c = make_case(kernels, STATE_FP32, 4);
    for (int i = 0; i < 4; i++) array_set(&c.start, i, start[i]);
    for (int i = 0; i < STEPS * 4; i++)
        array_set(&c.gradients, i, 2 * gradients[i]); /* scale 0.5 */
    run(&c);
    memcpy(c.master.exact, after, sizeof after);
    array_check("master", &c.master, 1e-6, 1e-7);
    release_arrays();
}

static void test_torch(void **state) {
    (void)state;
    for_each_instance(check_torch);
}

/* Widens moments of c into fp32 moments of `wide`. */
static void widen(const Case *c, Case *wide) {
    float *m = wide->moment1, *v = wide->moment2;
    for (int64_t i = 0; i < c->n; i++) {
        if (c->format == STATE_BF16) {
            m[i] = bf16_to_float(((bf16 *)c->moment1)[i]);
            v[i] = bf16_to_float(((bf16 *)c->moment2)[i]);
        } else {
            m[i] = state_decode(((uint8_t *)c->moment1)[i], true) * c->absmax1[i / STATE_BLOCK];
            v[i] = state_decode(((uint8_t *)c->moment2)[i], false) * c->absmax2[i / STATE_BLOCK];
        }
    }
}

static void expect_bf16(const Case *c, const Case *wide, int64_t step) {
    const float *m = wide->moment1, *v = wide->moment2;
    AdamwArguments a = arguments_of(c, step);
    uint64_t stream = random_stream(RANDOM_ROUND, a.tensor);
    for (int64_t i = 0; i < c->n; i++) {
        uint32_t word = random_u32(a.seed, stream, ((uint64_t)step << 40) + (uint64_t)i);
        assert_int_equal(((bf16 *)c->moment1)[i], bf16_stochastic(m[i], word));
        assert_int_equal(((bf16 *)c->moment2)[i], bf16_stochastic(v[i], word << 16));
    }
}

static void expect_codes(const uint8_t *codes, const float *absmax, const float *values, int64_t n,
                         bool is_signed) {
    for (int64_t start = 0; start < n; start += STATE_BLOCK) {
        int64_t end = start + STATE_BLOCK < n ? start + STATE_BLOCK : n;
        float largest = 0;
        for (int64_t i = start; i < end; i++) largest = fmaxf(largest, fabsf(values[i]));
        assert_true(absmax[start / STATE_BLOCK] == largest);
        float divisor = largest > 0 ? largest : 1;
        for (int64_t i = start; i < end; i++)
            assert_int_equal(codes[i], state_encode(values[i] / divisor, is_signed));
    }
}

/* A step with reduced moments is a step with fp32 moments on their widened values, and then the
 * format's rounding: all bit for bit. */
static void check_format(const CpuKernels *kernels, StateFormat format, int64_t n) {
    Case c = make_case(kernels, format, n), wide = make_case(kernels, STATE_FP32, n);
    wide.gradients = c.gradients;
    reset(&c);
    for (int64_t step = 1; step <= STEPS; step++) {
        widen(&c, &wide);
        memcpy(wide.master.data, c.master.data, array_bytes(&c.master));
        take_step(&c, step);
        take_step(&wide, step);
        assert_memory_equal(c.master.data, wide.master.data, array_bytes(&c.master));
        assert_memory_equal(c.working.data, wide.working.data, array_bytes(&c.working));
        if (format == STATE_BF16) {
            expect_bf16(&c, &wide, step);
        } else {
            expect_codes(c.moment1, c.absmax1, wide.moment1, n, true);
            expect_codes(c.moment2, c.absmax2, wide.moment2, n, false);
        }
    }
    same_for_all_threads(run, &c);
    release_arrays();
}

static void check_formats(const CpuKernels *kernels) {
    for (int s = 0; s < 6; s++) {
        check_format(kernels, STATE_BF16, sizes[s]);
        check_format(kernels, STATE_8BIT, sizes[s]);
    }
}

static void test_formats(void **state) {
    (void)state;
    for_each_instance(check_formats);
}

static uint64_t bits[STATE_8BIT + 1]; /* of the first instance */

static void check_bits(const CpuKernels *kernels) {
    for (StateFormat format = STATE_FP32; format <= STATE_8BIT; format++) {
        Case c = make_case(kernels, format, 1000);
        uint64_t hash = run(&c);
        if (!bits[format]) bits[format] = hash;
        assert_true(hash == bits[format]);
        release_arrays();
    }
}

static void test_same_bits_in_every_instance(void **state) {
    (void)state;
    for_each_instance(check_bits);
}

/* In fp32 recipes the working weights are the master itself, or none. */
static void check_no_working_copy(const CpuKernels *kernels) {
    Case c = make_case(kernels, STATE_FP32, 300);
    uint64_t with = run(&c);
    Array working = c.working;
    c.working = (Array){0};
    assert_true(run(&c) == with);
    if (kernels->storage == DTYPE_F32) c.working = c.master;
    assert_true(run(&c) == with);
    c.working = working;
    release_arrays();
}

static void test_no_working_copy(void **state) {
    (void)state;
    for_each_instance(check_no_working_copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),       cmocka_unit_test(test_torch),
        cmocka_unit_test(test_formats),         cmocka_unit_test(test_same_bits_in_every_instance),
        cmocka_unit_test(test_no_working_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
