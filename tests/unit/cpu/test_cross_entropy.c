#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    int64_t n, V;
    bool gradient;
    int32_t *targets;
    Array start, logits, losses;
} Case;

static const float scale = 0.37f;

static uint64_t run(void *context) {
    Case *c = context;
    memcpy(c->logits.data, c->start.data, array_bytes(&c->start));
    c->kernels->cross_entropy(c->losses.data, c->logits.data, NULL, c->targets,
                              (CrossEntropyShape){.N = c->n,
                                                  .V = c->V,
                                                  .stride = c->V,
                                                  .scale = scale,
                                                  .gradient = c->gradient});
    return array_hash(array_hash(0, &c->losses), &c->logits);
}

/* The losses, the gradient of scale * their sum, and that. */
static double reference(void *context) {
    Case *c = context;
    double total = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const double *row = c->start.exact + i * c->V;
        double *gradient = c->logits.exact + i * c->V, largest = -INFINITY, sum = 0;
        for (int64_t v = 0; v < c->V; v++) largest = fmax(largest, row[v]);
        for (int64_t v = 0; v < c->V; v++) sum += exp(row[v] - largest);
        bool counts = c->targets[i] >= 0;
        c->losses.exact[i] = counts ? largest + log(sum) - row[c->targets[i]] : 0;
        for (int64_t v = 0; v < c->V; v++)
            gradient[v] =
                counts ? (exp(row[v] - largest) / sum - (v == c->targets[i])) * (double)scale : 0;
        total += c->losses.exact[i];
    }
    return total * (double)scale;
}

static void check_size(const CpuKernels *kernels, int64_t n, int64_t V, double deviation) {
    Case c = {.kernels = kernels, .n = n, .V = V, .gradient = true, .targets = tokens_random(n, V)};
    c.start = array_random(kernels->storage, n * V, deviation);
    c.logits = array_of(kernels->storage, n * V, NAN);
    c.losses = array_of(DTYPE_F32, n, NAN);
    if (n > 1) c.targets[n / 2] = -1;
    c.targets[n - 1] = (int32_t)V - 1;
    same_for_all_threads(run, &c);
    reference(&c);
    array_check("losses", &c.losses, 1e-6, 1e-5 + 1e-7 * deviation);
    array_check("gradient", &c.logits, 1e-5 + 1e-6 * deviation, 1e-6);
    if (deviation <= 2 && V < 2000) {
        double *gradient = keep((size_t)(n * V) * sizeof(double));
        memcpy(gradient, c.logits.exact, (size_t)(n * V) * sizeof(double));
        check_gradient("logits", c.start.exact, gradient, n * V, reference, &c);
        reference(&c);
    }
    c.gradient = false; /* then the logits stay */
    same_for_all_threads(run, &c);
    array_check("losses alone", &c.losses, 1e-6, 1e-5 + 1e-7 * deviation);
    assert_memory_equal(c.logits.data, c.start.data, array_bytes(&c.start));
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t sizes[] = {1, 2, 17, 1023, 1024, 1025, 50257};
    for (int s = 0; s < 7; s++) {
        check_size(kernels, 1, sizes[s], 2);
        check_size(kernels, 5, sizes[s], 2);
        check_size(kernels, 5, sizes[s], 1000); /* exponentials far out of range */
    }
}

static void test_cross_entropy(void **state) {
    (void)state;
    for_each_instance(check);
}

static float loss_of(const CpuKernels *kernels, const double *logits, int64_t V, int32_t target) {
    Array row = array_of(kernels->storage, V, 0);
    for (int64_t v = 0; v < V; v++) array_set(&row, v, logits[v]);
    float loss;
    kernels->cross_entropy(&loss, row.data, NULL, &target,
                           (CrossEntropyShape){.N = 1, .V = V, .stride = V, .scale = 1});
    release_arrays();
    return loss;
}

static void check_not_finite(const CpuKernels *kernels) {
    double logits[19] = {0};
    logits[18] = -INFINITY; /* impossible, and of no weight */
    assert_true(fabsf(loss_of(kernels, logits, 19, 0) - logf(18)) < 1e-6f);
    assert_true(isinf(loss_of(kernels, logits, 19, 18)));
    for (int64_t place = 0; place < 19; place++) { /* never hidden, wherever it stands */
        double spoiled[19] = {0};
        spoiled[place] = NAN;
        assert_true(isnan(loss_of(kernels, spoiled, 19, 5)));
        spoiled[place] = INFINITY;
        float loss = loss_of(kernels, spoiled, 19, 5);
        assert_true(isnan(loss) || isinf(loss));
    }
}

static void test_not_finite(void **state) {
    (void)state;
    for_each_instance(check_not_finite);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
