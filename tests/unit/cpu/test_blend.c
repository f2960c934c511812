#include "kernel_test.h"

typedef enum Addend { NONE, SEPARATE, IN_PLACE } Addend;

typedef struct Case {
    const CpuKernels *kernels;
    BlendShape shape;
    Addend addend;
    bool has_a;
    Array x, y, a, b, out, dout, above, dx, dy, da, db, start;
    void *workspace;
} Case;

static uint64_t run(void *context) {
    Case *c = context;
    const float *a = c->has_a ? c->a.data : NULL;
    c->kernels->blend_forward(c->out.data, c->x.data, c->y.data, a, c->b.data, c->shape);
    memcpy(c->da.data, c->start.data, sizeof(float));
    memcpy(c->db.data, c->start.data, sizeof(float));
    const void *above = c->addend == NONE ? NULL : c->above.data, *dout = c->dout.data;
    if (c->addend == IN_PLACE) {
        above = memcpy(c->dy.data, c->above.data, array_bytes(&c->dy));
        dout = memcpy(c->dx.data, c->dout.data, array_bytes(&c->dx));
    }
    c->kernels->blend_backward(c->dx.data, c->dy.data, a ? c->da.data : NULL, c->db.data, dout,
                               c->x.data, c->y.data, a, c->b.data, above, c->workspace, c->shape);
    uint64_t hash = array_hash(array_hash(0, &c->out), &c->dx);
    return array_hash(array_hash(array_hash(hash, &c->dy), &c->da), &c->db);
}

/* dy_addend is the gradient that reaches y by other ways. */
static double loss(void *context) {
    Case *c = context;
    double a = c->has_a ? *c->a.exact : 1, b = (double)c->shape.sign * *c->b.exact;
    for (int64_t i = 0; i < c->shape.n; i++)
        c->out.exact[i] = a * c->x.exact[i] + b * c->y.exact[i];
    double other = c->addend == NONE ? 0 : inner_product(c->above.exact, c->y.exact, c->shape.n);
    return inner_product(c->out.exact, c->dout.exact, c->shape.n) + other +
           *c->start.exact * (*c->a.exact + *c->b.exact);
}

static void reference_backward(Case *c) {
    double sign = (double)c->shape.sign;
    int64_t n = c->shape.n;
    for (int64_t i = 0; i < n; i++) {
        double above = c->addend == NONE ? 0 : c->above.exact[i];
        c->dx.exact[i] = (c->has_a ? *c->a.exact : 1) * c->dout.exact[i];
        c->dy.exact[i] = sign * *c->b.exact * c->dout.exact[i] + above;
    }
    double along_x = inner_product(c->dout.exact, c->x.exact, n);
    *c->da.exact = *c->start.exact + (c->has_a ? along_x : 0);
    *c->db.exact = *c->start.exact + sign * inner_product(c->dout.exact, c->y.exact, n);
}

static void check_size(const CpuKernels *kernels, int64_t n, bool has_a, float sign,
                       Addend addend) {
    Dtype storage = kernels->storage;
    Case c = {.kernels = kernels, .shape = {n, sign}, .has_a = has_a, .addend = addend};
    c.x = array_random(storage, n, 2);
    c.y = array_random(storage, n, 1);
    c.a = array_random(DTYPE_F32, 1, 1);
    c.b = array_random(DTYPE_F32, 1, 1);
    c.out = array_of(storage, n, NAN);
    c.dout = array_random(storage, n, 1);
    c.above = array_random(storage, n, 1);
    c.dx = array_of(storage, n, NAN);
    c.dy = array_of(storage, n, NAN);
    c.start = array_random(DTYPE_F32, 1, 1);
    c.da = array_of(DTYPE_F32, 1, NAN);
    c.db = array_of(DTYPE_F32, 1, NAN);
    c.workspace = keep(kernels->blend_workspace(c.shape));
    same_for_all_threads(run, &c);
    loss(&c);
    reference_backward(&c);
    const double noise = 1e-6 * sqrt((double)n);
    array_check("out", &c.out, 1e-6, 1e-6);
    array_check("dx", &c.dx, 1e-6, 0);
    array_check("dy", &c.dy, 1e-6, 1e-6);
    array_check("da", &c.da, 1e-6, noise);
    array_check("db", &c.db, 1e-6, noise);
    check_gradient("x", c.x.exact, c.dx.exact, n, loss, &c);
    check_gradient("y", c.y.exact, c.dy.exact, n, loss, &c);
    check_gradient("a", c.a.exact, c.da.exact, 1, loss, &c);
    check_gradient("b", c.b.exact, c.db.exact, 1, loss, &c);
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t sizes[] = {1, 17, 4096, 8191, 20001};
    for (int s = 0; s < 5; s++)
        for (Addend addend = NONE; addend <= IN_PLACE; addend++) {
            check_size(kernels, sizes[s], true, 1, addend);
            check_size(kernels, sizes[s], false, -1, addend);
        }
}

static void test_blend(void **state) {
    (void)state;
    for_each_instance(check);
}

/* Without scalars it is a sum, or a difference. */
static void check_sum(const CpuKernels *kernels) {
    Array x = array_random(kernels->storage, 37, 1), y = array_random(kernels->storage, 37, 1);
    Array out = array_of(kernels->storage, 37, NAN);
    for (float sign = -1; sign <= 1; sign += 2) {
        kernels->blend_forward(out.data, x.data, y.data, NULL, NULL, (BlendShape){37, sign});
        for (int i = 0; i < 37; i++) out.exact[i] = x.exact[i] + (double)sign * y.exact[i];
        array_check("sum", &out, 1e-6, 1e-7);
    }
    release_arrays();
}

static void test_sum(void **state) {
    (void)state;
    for_each_instance(check_sum);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blend),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
