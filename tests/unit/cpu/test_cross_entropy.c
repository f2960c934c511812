#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    CrossEntropyShape shape;
    int32_t *targets, *best;
    Array start, logits, losses;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    memcpy(c->logits.data, c->start.data, array_bytes(&c->start));
    void *workspace = malloc(c->kernels->cross_entropy_workspace(c->shape));
    c->kernels->cross_entropy(c->losses.data, c->logits.data, c->best, c->targets, workspace,
                              c->shape);
    free(workspace);
    uint64_t hash = array_hash(array_hash(0, &c->losses), &c->logits);
    return c->best ? hash_bytes(hash, c->best, (size_t)c->shape.N * sizeof *c->best) : hash;
}

static double capped(const Case *c, double logit) {
    double cap = (double)c->shape.cap;
    return cap > 0 ? cap * tanh(logit / cap) : logit;
}

/* The derivative of capped(). */
static double slope(const Case *c, double logit) {
    double cap = (double)c->shape.cap;
    return cap > 0 ? 1 / pow(cosh(logit / cap), 2) : 1;
}

/* The loss of a row; its gradient, of `scale` times the loss, is written. */
static double reference_row(const Case *c, const double *row, double *gradient, int32_t target) {
    const int64_t V = c->shape.V;
    double largest = -INFINITY, sum = 0, scale = (double)c->shape.scale;
    for (int64_t v = 0; v < V; v++) largest = fmax(largest, capped(c, row[v]));
    for (int64_t v = 0; v < V; v++) sum += exp(capped(c, row[v]) - largest);
    memset(gradient, 0, (size_t)c->shape.stride * sizeof *gradient);
    for (int64_t v = 0; target >= 0 && v < V; v++)
        gradient[v] =
            (exp(capped(c, row[v]) - largest) / sum - (v == target)) * scale * slope(c, row[v]);
    return target < 0 ? 0 : largest + log(sum) - capped(c, row[target]);
}

static double reference(void *context) {
    Case *c = context;
    double total = 0;
    for (int64_t n = 0; n < c->shape.N; n++)
        total += c->losses.exact[n] =
            reference_row(c, c->start.exact + n * c->shape.stride,
                          c->logits.exact + n * c->shape.stride, c->targets[n]);
    return total * (double)c->shape.scale;
}

static void check_best(const Case *c) {
    for (int64_t n = 0; n < c->shape.N; n++) {
        const double *row = c->start.exact + n * c->shape.stride;
        int32_t best = 0;
        for (int32_t v = 1; v < c->shape.V; v++)
            if (row[v] > row[best]) best = v;
        assert_int_equal(c->best[n], best);
    }
}

/* Columns beyond the vocabulary hold the largest numbers of all. */
static Case make_case(const CpuKernels *kernels, CrossEntropyShape shape, double deviation) {
    const int64_t count = shape.N * shape.stride;
    Case c = {.kernels = kernels, .shape = shape, .targets = tokens_random(shape.N, shape.V)};
    c.start = array_random(kernels->storage, count, deviation);
    for (int64_t i = 0; i < count; i++)
        if (i % shape.stride >= shape.V) array_set(&c.start, i, 1e6);
    c.logits = array_of(kernels->storage, count, NAN);
    c.losses = array_of(DTYPE_F32, shape.N, NAN);
    if (shape.N > 1) c.targets[shape.N / 2] = -1;
    c.targets[shape.N - 1] = (int32_t)shape.V - 1;
    return c;
}

static void check_shape(const CpuKernels *kernels, CrossEntropyShape shape, double deviation) {
    Case c = make_case(kernels, shape, deviation);
    const double error = 1e-5 + 1e-7 * (shape.cap > 0 ? (double)shape.cap : deviation);
    same_for_all_threads(run, &c);
    reference(&c);
    array_check("losses", &c.losses, 1e-6, error);
    array_check("gradient", &c.logits, 1e-5 + 1e-6 * deviation, 1e-6);
    if (deviation <= 2 && shape.V < 2000) {
        double *gradient = keep((size_t)c.logits.count * sizeof *gradient);
        memcpy(gradient, c.logits.exact, (size_t)c.logits.count * sizeof *gradient);
        check_gradient("logits", c.start.exact, gradient, c.logits.count, reference, &c);
        reference(&c);
    }
    c.shape.gradient = false; /* then the logits stay */
    c.best = keep((size_t)shape.N * sizeof *c.best);
    same_for_all_threads(run, &c);
    array_check("losses alone", &c.losses, 1e-6, error);
    check_best(&c);
    assert_memory_equal(c.logits.data, c.start.data, array_bytes(&c.start));
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t sizes[] = {1, 2, 17, 1023, 1024, 1025, 50257};
    for (int s = 0; s < 7; s++)
        for (int variant = 0; variant < 4; variant++) {
            CrossEntropyShape shape = {.N = 5,
                                       .V = sizes[s],
                                       .stride = sizes[s] + (variant & 1 ? 47 : 0),
                                       .scale = 0.37f,
                                       .cap = variant & 2 ? 15 : 0,
                                       .gradient = true};
            check_shape(kernels, shape, 2);
            check_shape(kernels, shape, 1000); /* exponentials far out of range */
            shape.N = 1;
            check_shape(kernels, shape, 2);
        }
}

static void test_cross_entropy(void **state) {
    (void)state;
    for_each_instance(check);
}

/* The first of the largest, also where they are many. */
static void check_ties(const CpuKernels *kernels) {
    const CrossEntropyShape shape = {.N = 1, .V = 100, .stride = 100, .scale = 1};
    const int32_t target = -1;
    for (int32_t first = 0; first < 100; first += 3) {
        Array row = array_of(kernels->storage, 100, -INFINITY);
        int32_t best = -1;
        float loss;
        for (int64_t v = first; v < 100; v += 7) array_set(&row, v, -3);
        kernels->cross_entropy(&loss, row.data, &best, &target, NULL, shape);
        assert_int_equal(best, first);
        release_arrays();
    }
}

static void test_ties(void **state) {
    (void)state;
    for_each_instance(check_ties);
}

static float loss_of(const CpuKernels *kernels, const double *logits, int64_t V, int32_t target,
                     float cap) {
    Array row = array_of(kernels->storage, V, 0);
    for (int64_t v = 0; v < V; v++) array_set(&row, v, logits[v]);
    const CrossEntropyShape shape = {.N = 1, .V = V, .stride = V, .scale = 1, .cap = cap};
    void *workspace = keep(kernels->cross_entropy_workspace(shape));
    float loss;
    kernels->cross_entropy(&loss, row.data, NULL, &target, workspace, shape);
    release_arrays();
    return loss;
}

static void check_not_finite(const CpuKernels *kernels) {
    double logits[19] = {0};
    logits[18] = -INFINITY; /* impossible, and of no weight */
    assert_true(fabsf(loss_of(kernels, logits, 19, 0, 0) - logf(18)) < 1e-6f);
    assert_true(isinf(loss_of(kernels, logits, 19, 18, 0)));
    for (int64_t place = 0; place < 19; place++) { /* never hidden, wherever it stands */
        double spoiled[19] = {0};
        spoiled[place] = NAN;
        assert_true(isnan(loss_of(kernels, spoiled, 19, 5, 0)));
        assert_true(isnan(loss_of(kernels, spoiled, 19, 5, 15)));
        spoiled[place] = INFINITY;
        float loss = loss_of(kernels, spoiled, 19, 5, 0);
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
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
