#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    GateShape shape;
    Array x, weight, gates, dgates, above, dx, start, dweight;
    void *workspace;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    c->kernels->gate_forward(c->gates.data, c->x.data, c->weight.data, c->shape);
    memcpy(c->dx.data, c->above.data, array_bytes(&c->dx));
    memcpy(c->dweight.data, c->start.data, array_bytes(&c->dweight));
    c->kernels->gate_backward(c->dx.data, c->dweight.data, c->dgates.data, c->gates.data, c->x.data,
                              c->weight.data, c->workspace, c->shape);
    return array_hash(array_hash(array_hash(0, &c->gates), &c->dx), &c->dweight);
}

static double sigmoid_of(const Case *c, int64_t n, int64_t g) {
    const GateShape *s = &c->shape;
    return 1 / (1 + exp(-inner_product(c->x.exact + n * s->C, c->weight.exact + g * s->channels,
                                       s->channels)));
}

/* Everything that dx and dweight hold already comes from elsewhere. */
static double loss(void *context) {
    Case *c = context;
    for (int64_t i = 0; i < c->gates.count; i++)
        c->gates.exact[i] =
            (double)c->shape.factor * sigmoid_of(c, i / c->shape.gates, i % c->shape.gates);
    return inner_product(c->gates.exact, c->dgates.exact, c->gates.count) +
           inner_product(c->above.exact, c->x.exact, c->x.count) +
           inner_product(c->start.exact, c->weight.exact, c->weight.count);
}

static void reference_backward(Case *c) {
    const GateShape *shape = &c->shape;
    memcpy(c->dx.exact, c->above.exact, (size_t)c->dx.count * sizeof(double));
    memcpy(c->dweight.exact, c->start.exact, (size_t)c->dweight.count * sizeof(double));
    for (int64_t n = 0; n < shape->N; n++)
        for (int64_t g = 0; g < shape->gates; g++) {
            double s = sigmoid_of(c, n, g);
            double dz = c->dgates.exact[n * shape->gates + g] * (double)shape->factor * s * (1 - s);
            for (int64_t i = 0; i < shape->channels; i++) {
                int64_t x = n * shape->C + i, weight = g * shape->channels + i;
                c->dx.exact[x] += dz * c->weight.exact[weight];
                c->dweight.exact[weight] += dz * c->x.exact[x];
            }
        }
}

static void check_shape(const CpuKernels *kernels, GateShape shape) {
    Dtype storage = kernels->storage;
    Case c = {.kernels = kernels, .shape = shape};
    c.x = array_random(storage, shape.N * shape.C, 1);
    c.weight = array_random(storage, shape.gates * shape.channels, 0.5);
    c.gates = array_of(DTYPE_F32, shape.N * shape.gates, NAN);
    c.dgates = array_random(DTYPE_F32, c.gates.count, 1);
    c.above = array_random(storage, c.x.count, 1);
    c.dx = array_of(storage, c.x.count, NAN);
    c.start = array_random(DTYPE_F32, c.weight.count, 1);
    c.dweight = array_of(DTYPE_F32, c.weight.count, NAN);
    c.workspace = keep(kernels->gate_workspace(shape));
    same_for_all_threads(run, &c);
    loss(&c);
    reference_backward(&c);
    array_check("gates", &c.gates, 2e-6, 0);
    array_check("dx", &c.dx, 1e-6, 5e-6);
    array_check("dweight", &c.dweight, 1e-6, 2e-5);
    check_gradient("x", c.x.exact, c.dx.exact, c.dx.count, loss, &c);
    check_gradient("weight", c.weight.exact, c.dweight.exact, c.dweight.count, loss, &c);
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t rows[] = {1, 7, 129, 500};
    for (int n = 0; n < 4; n++) {
        check_shape(kernels, (GateShape){rows[n], 64, 1, 24, 1}); /* nanochat's smear gate */
        check_shape(kernels, (GateShape){rows[n], 70, 6, 12, 3}); /* and its value gates */
        check_shape(kernels, (GateShape){rows[n], 37, 3, 37, 2});
        check_shape(kernels, (GateShape){rows[n], 5, 2, 1, 1});
    }
}

static void test_gate(void **state) {
    (void)state;
    for_each_instance(check);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
