/* Muon's kernels against double precision, and momentum in bf16 bit for bit. */
#include "kernel_test.h"

#include "muon_reference.h"

enum { SHAPES = 9, STEPS = 3 };
static const int64_t shapes[SHAPES][2] = {{1, 1},   {3, 12},  {12, 3},  {5, 700}, {700, 5},
                                          {33, 33}, {64, 48}, {48, 64}, {130, 67}};

static const float mu = 0.9f, scale = 0.5f;
static const MuonRates rates = {0.02f, 0.1f, 0.9f};

typedef struct Case {
    const CpuKernels *kernels;
    MuonShape shape;
    int64_t n;
    Array gradients;          /* [STEPS,n] */
    Array gradient, momentum; /* [n] of begin */
    Array update;             /* as it is stored; out of begin, into end */
    Array start;              /* [n] what the master was */
    Array master, working, variance;
    void *workspace;
} Case;

static Case make_case(const CpuKernels *kernels, const int64_t shape[2], Dtype momentum) {
    int64_t n = shape[0] * shape[1], most = shape[0] > shape[1] ? shape[0] : shape[1];
    Case c = {.kernels = kernels, .n = n};
    c.shape = (MuonShape){.rows = shape[0],
                          .columns = shape[1],
                          .momentum = momentum,
                          .beta2 = (float)rates.beta2,
                          .tensor = 5};
    c.gradients = array_random(DTYPE_F32, STEPS * n, 1e-3);
    c.gradient = array_of(DTYPE_F32, n, 0);
    c.momentum = array_of(momentum, n, 0);
    c.update = array_of(kernels->storage, n, 0);
    c.start = array_random(DTYPE_F32, n, 0.02);
    c.master = array_of(DTYPE_F32, n, 0);
    c.working = array_of(kernels->storage, n, 0);
    c.variance = array_of(DTYPE_F32, most, 0);
    c.workspace = keep(kernels->muon_workspace(c.shape));
    return c;
}

static MuonArguments arguments_of(const Case *c, int64_t step) {
    return (MuonArguments){.master = c->master.data,
                           .working = c->working.data,
                           .gradient = c->gradient.data,
                           .update = c->update.data,
                           .momentum = c->momentum.data,
                           .variance = c->variance.data,
                           .workspace = c->workspace,
                           .shape = c->shape,
                           .momentum_factor = mu,
                           .gradient_scale = scale,
                           .rate = (float)rates.rate,
                           .weight_decay = (float)rates.weight_decay,
                           .step = step,
                           .seed = 0x123456789abcdefu};
}

/* Where element (row, column) of the update is stored. */
static int64_t place(const MuonShape *shape, int64_t row, int64_t column) {
    return shape->rows > shape->columns ? column * shape->rows + row
                                        : row * shape->columns + column;
}

static void stored(double *to, const double *from, const MuonShape *shape) {
    for (int64_t r = 0; r < shape->rows; r++)
        for (int64_t c = 0; c < shape->columns; c++)
            to[place(shape, r, c)] = from[r * shape->columns + c];
}

static void begin(Case *c, int64_t step) {
    memcpy(c->gradient.data, (const float *)c->gradients.data + (step - 1) * c->n,
           array_bytes(&c->gradient));
    MuonArguments arguments = arguments_of(c, step);
    c->kernels->muon_begin(&arguments);
    for (int64_t i = 0; i < c->n; i++) assert_true(array_get(&c->gradient, i) == 0);
}

static uint64_t run_begin(void *context) {
    Case *c = context;
    memset(c->momentum.data, 0, array_bytes(&c->momentum));
    for (int64_t step = 1; step <= STEPS; step++) begin(c, step);
    return array_hash(array_hash(0, &c->momentum), &c->update);
}

static void check_begin(const CpuKernels *kernels) {
    for (int s = 0; s < SHAPES; s++) {
        Case c = make_case(kernels, shapes[s], DTYPE_F32);
        double *x = keep((size_t)c.n * sizeof *x), *scaled = keep((size_t)c.n * sizeof *x);
        memset(c.momentum.exact, 0, (size_t)c.n * sizeof *x);
        for (int64_t step = 0; step < STEPS; step++) {
            for (int64_t i = 0; i < c.n; i++)
                scaled[i] = (double)scale * c.gradients.exact[step * c.n + i];
            reference_begin(x, c.momentum.exact, scaled, c.shape.rows, c.shape.columns, (double)mu);
        }
        stored(c.update.exact, x, &c.shape);
        same_for_all_threads(run_begin, &c);
        array_check("momentum", &c.momentum, 1e-6, 1e-10);
        array_check("update", &c.update, 2e-6, 1e-8);
        release_arrays();
    }
}

static void test_begin(void **state) {
    (void)state;
    for_each_instance(check_begin);
}

/* A row of zeros stays one, and so does a whole matrix of them. */
static void check_zeros(const CpuKernels *kernels) {
    for (int64_t rows = 0; rows < 2; rows++) {
        Case c = make_case(kernels, shapes[6], DTYPE_F32);
        for (int64_t i = 0; i < STEPS * c.n; i++)
            if (!rows || i % c.n / c.shape.columns == 3) array_set(&c.gradients, i, 0);
        run_begin(&c);
        for (int64_t i = 0; i < c.n; i++) {
            int64_t row = i / c.shape.columns, column = i % c.shape.columns;
            double x = array_get(&c.update, place(&c.shape, row, column));
            assert_true((x == 0) == (!rows || row == 3));
        }
        release_arrays();
    }
}

static void test_zeros(void **state) {
    (void)state;
    for_each_instance(check_zeros);
}

/* A step on momenta in bf16 is one on their widened values, and then the rounding, whatever rows the
 * elements of a block of random words belong to. */
static void check_rounding(const CpuKernels *kernels) {
    for (int s = 0; s < SHAPES; s++) {
        Case c = make_case(kernels, shapes[s], DTYPE_BF16),
             wide = make_case(kernels, shapes[s], DTYPE_F32);
        wide.gradients = c.gradients;
        memset(c.momentum.data, 0, array_bytes(&c.momentum));
        for (int64_t step = 1; step <= STEPS; step++) {
            for (int64_t i = 0; i < c.n; i++)
                array_set(&wide.momentum, i, array_get(&c.momentum, i));
            begin(&c, step);
            begin(&wide, step);
            for (int64_t i = 0; i < c.n; i++) c.update.exact[i] = array_get(&wide.update, i);
            array_check("update", &c.update, 1e-6, 0); /* norms add up in another order */
            MuonArguments a = arguments_of(&c, step);
            uint64_t stream = random_stream(RANDOM_ROUND, a.shape.tensor);
            for (int64_t i = 0; i < c.n; i++) {
                uint32_t word = random_u32(a.seed, stream, ((uint64_t)step << 40) + (uint64_t)i);
                float m = ((const float *)wide.momentum.data)[i];
                assert_int_equal(((const bf16 *)c.momentum.data)[i], bf16_stochastic(m, word));
            }
        }
        same_for_all_threads(run_begin, &c);
        release_arrays();
    }
}

static void test_rounding(void **state) {
    (void)state;
    for_each_instance(check_rounding);
}

typedef struct Polynomial {
    const CpuKernels *kernels;
    PolynomialShape shape;
    Array a1, a2, out;
} Polynomial;

static uint64_t run_polynomial(void *context) {
    Polynomial *p = context;
    p->kernels->muon_polynomial(p->out.data, p->a1.data, p->a2.data, p->shape);
    return array_hash(0, &p->out);
}

static void check_polynomial(const CpuKernels *kernels) {
    static const int64_t sizes[] = {1, 3, 16, 33, 100};
    for (int s = 0; s < 5; s++) {
        int64_t m = sizes[s];
        Polynomial p = {.kernels = kernels, .shape = {.m = m, .a = 8.2f, .b = -22.5f, .c = 15.9f}};
        p.a1 = array_random(kernels->storage, m * m, 0.3);
        p.a2 = array_random(kernels->storage, m * m, 0.3);
        p.out = array_of(kernels->storage, m * m, 0);
        for (int64_t i = 0; i < m * m; i++)
            p.out.exact[i] = (i / m == i % m ? (double)p.shape.a : 0) +
                             (double)p.shape.b * p.a1.exact[i] + (double)p.shape.c * p.a2.exact[i];
        same_for_all_threads(run_polynomial, &p);
        array_check("polynomial", &p.out, 1e-6, 2e-6);
        release_arrays();
    }
}

static void test_polynomial(void **state) {
    (void)state;
    for_each_instance(check_polynomial);
}

static uint64_t run_end(void *context) {
    Case *c = context;
    memcpy(c->master.data, c->start.data, array_bytes(&c->start));
    memset(c->variance.data, 0, array_bytes(&c->variance));
    for (int64_t step = 1; step <= STEPS; step++) {
        MuonArguments arguments = arguments_of(c, step);
        c->kernels->muon_end(&arguments);
    }
    return array_hash(array_hash(array_hash(0, &c->master), &c->variance), &c->working);
}

static void check_end(const CpuKernels *kernels) {
    for (int s = 0; s < SHAPES; s++) {
        Case c = make_case(kernels, shapes[s], DTYPE_F32);
        double *x = keep((size_t)c.n * sizeof *x), *update = keep((size_t)c.n * sizeof *x);
        for (int64_t i = 0; i < c.n; i++)
            x[i] = (double)random_normal(9, 1, (uint64_t)i) * (double)(1 + i % 3);
        for (int64_t i = 0; i < c.n; i++) {
            int64_t at = place(&c.shape, i / c.shape.columns, i % c.shape.columns);
            array_set(&c.update, at, x[i]);
            x[i] = array_get(&c.update, at);
        }
        memcpy(c.master.exact, c.start.exact, (size_t)c.n * sizeof *x);
        memset(c.variance.exact, 0, (size_t)c.variance.count * sizeof *x);
        for (int step = 0; step < STEPS; step++) {
            memcpy(update, x, (size_t)c.n * sizeof *x);
            reference_end(c.master.exact, c.variance.exact, update, c.shape.rows, c.shape.columns,
                          rates);
        }
        same_for_all_threads(run_end, &c);
        array_check("variance", &c.variance, 2e-6, 0);
        array_check("master", &c.master, 2e-6, 1e-7);
        array_check_working(&c.working, &c.master);
        release_arrays();
    }
}

static void test_end(void **state) {
    (void)state;
    for_each_instance(check_end);
}

/* In fp32 recipes the working weights are the master itself, or none. */
static void check_no_working_copy(const CpuKernels *kernels) {
    for (int s = 0; s < SHAPES; s++) {
        Case c = make_case(kernels, shapes[s], DTYPE_F32);
        for (int64_t i = 0; i < c.n; i++)
            array_set(&c.update, i, (double)random_normal(9, 1, (uint64_t)i));
        run_end(&c);
        uint64_t with = array_hash(0, &c.master);
        c.working.data = NULL, c.working.count = 0;
        run_end(&c);
        assert_true(array_hash(0, &c.master) == with);
        if (kernels->storage == DTYPE_F32) c.working.data = c.master.data;
        run_end(&c);
        assert_true(array_hash(0, &c.master) == with);
        release_arrays();
    }
}

static void test_no_working_copy(void **state) {
    (void)state;
    for_each_instance(check_no_working_copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin),    cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_polynomial),
        cmocka_unit_test(test_end),      cmocka_unit_test(test_no_working_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
