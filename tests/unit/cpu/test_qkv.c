#include "kernel_test.h"

typedef struct Case {
    const CpuKernels *kernels;
    QkvShape shape;
    int64_t position;
    bool with_values, in_place;
    int32_t *tokens, *branch_start;
    Array projected, table, values, gates;
    Array out, rstd;
    Array dqkv, dprojected, dvalues, dgates;
} Case;

enum { VOCABULARY = 11 };

static int64_t turned(const Case *c) {
    return c->shape.H + c->shape.KV;
}

static int64_t stride(const Case *c) {
    return (turned(c) + c->shape.KV) * c->shape.D;
}

/* The backward is that of training: no branches, position 0. */
static uint64_t run(void *context) {
    Case *c = context;
    const void *values = c->with_values ? c->values.data : NULL;
    const float *gates = c->with_values ? c->gates.data : NULL;
    const int32_t *tokens = c->with_values ? c->tokens : NULL;
    void *out = c->out.data, *dprojected = c->dprojected.data;
    const void *projected = c->projected.data, *dqkv = c->dqkv.data;
    if (c->in_place) projected = memcpy(out, projected, array_bytes(&c->out));
    if (c->in_place) dqkv = memcpy(dprojected, dqkv, array_bytes(&c->dqkv));
    c->kernels->qkv_forward(out, c->rstd.data, projected, c->table.data, c->branch_start, tokens,
                            values, gates, c->position, c->shape);
    uint64_t hash = array_hash(array_hash(0, &c->out), &c->rstd);
    if (c->position || c->branch_start) return hash;
    c->kernels->qkv_backward(dprojected, c->with_values ? c->dvalues.data : NULL,
                             c->with_values ? c->dgates.data : NULL, dqkv, out, c->rstd.data,
                             c->table.data, tokens, values, gates, c->shape);
    hash = array_hash(hash, &c->dprojected);
    return c->with_values ? array_hash(array_hash(hash, &c->dvalues), &c->dgates) : hash;
}

static const double *turn_of(const Case *c, int64_t n) {
    int64_t start = c->branch_start ? c->branch_start[n] : 0;
    return c->table.exact + (c->position + n % c->shape.T - start) * c->shape.D;
}

/* y = x turned by the angles of the row, or by their negatives. */
static void turn(double *y, const double *x, const double *row, int64_t D, double sign) {
    for (int64_t i = 0; i < D / 2; i++) {
        double cosine = row[2 * i], sine = sign * row[2 * i + 1], second = x[i + D / 2];
        y[i] = x[i] * cosine - second * sine;
        y[i + D / 2] = second * cosine + x[i] * sine;
    }
}

static void reference_head(Case *c, int64_t n, int64_t h) {
    const int64_t D = c->shape.D, at = n * stride(c) + h * D;
    double z[256];
    turn(z, c->projected.exact + at, turn_of(c, n), D, -1);
    double rstd = 1 / sqrt(inner_product(z, z, D) / (double)D + (double)c->shape.eps);
    c->rstd.exact[n * turned(c) + h] = rstd;
    for (int64_t i = 0; i < D; i++) c->out.exact[at + i] = (double)c->shape.scale * z[i] * rstd;
}

static double loss(void *context) {
    Case *c = context;
    const int64_t D = c->shape.D, KV = c->shape.KV;
    for (int64_t n = 0; n < c->shape.N; n++) {
        for (int64_t h = 0; h < turned(c); h++) reference_head(c, n, h);
        for (int64_t i = 0; i < KV * D; i++) {
            int64_t at = n * stride(c) + turned(c) * D + i;
            double added =
                c->gates.exact[n * KV + i / D] * c->values.exact[c->tokens[n] * KV * D + i];
            c->out.exact[at] = c->projected.exact[at] + (c->with_values ? added : 0);
        }
    }
    return inner_product(c->out.exact, c->dqkv.exact, c->out.count);
}

/* From the output y = scale z r and the Jacobian d y_j / d z_i = scale (r [i = j] - r^3 z_i z_j / D). */
static void reference_head_backward(Case *c, int64_t n, int64_t h) {
    const int64_t D = c->shape.D, at = n * stride(c) + h * D;
    const double scale = (double)c->shape.scale, rstd = c->rstd.exact[n * turned(c) + h];
    const double *y = c->out.exact + at, *dy = c->dqkv.exact + at;
    double dz[256], along = inner_product(dy, y, D) / (scale * scale * (double)D);
    for (int64_t i = 0; i < D; i++) dz[i] = scale * rstd * (dy[i] - y[i] * along);
    turn(c->dprojected.exact + at, dz, turn_of(c, n), D, 1);
}

static void reference_backward(Case *c) {
    const int64_t D = c->shape.D, KV = c->shape.KV;
    for (int64_t n = 0; n < c->shape.N; n++) {
        for (int64_t h = 0; h < turned(c); h++) reference_head_backward(c, n, h);
        const double *dv = c->dqkv.exact + n * stride(c) + turned(c) * D;
        memcpy(c->dprojected.exact + n * stride(c) + turned(c) * D, dv,
               (size_t)(KV * D) * sizeof *dv);
        for (int64_t i = 0; i < KV * D; i++)
            c->dvalues.exact[n * KV * D + i] = c->gates.exact[n * KV + i / D] * dv[i];
        for (int64_t kv = 0; kv < KV; kv++)
            c->dgates.exact[n * KV + kv] =
                inner_product(dv + kv * D, c->values.exact + (c->tokens[n] * KV + kv) * D, D);
    }
}

static Case make_case(const CpuKernels *kernels, QkvShape shape, int64_t positions) {
    Dtype storage = kernels->storage;
    Case c = {.kernels = kernels, .shape = shape, .tokens = tokens_random(shape.N, VOCABULARY)};
    c.projected = array_random(storage, shape.N * stride(&c), 1.5);
    c.values = array_random(storage, VOCABULARY * shape.KV * shape.D, 1);
    c.gates = array_random(DTYPE_F32, shape.N * shape.KV, 1);
    c.out = array_of(storage, c.projected.count, NAN);
    c.rstd = array_of(DTYPE_F32, shape.N * turned(&c), NAN);
    c.dqkv = array_random(storage, c.projected.count, 1);
    c.dprojected = array_of(storage, c.projected.count, NAN);
    c.dvalues = array_of(storage, shape.N * shape.KV * shape.D, NAN);
    c.dgates = array_of(DTYPE_F32, shape.N * shape.KV, NAN);
    c.table = array_of(DTYPE_F32, positions * shape.D, 0);
    for (int64_t i = 0; i < positions * shape.D; i += 2) {
        double pair = (double)(i % shape.D) / (double)shape.D;
        double angle = (double)(i / shape.D) * pow(100000, -pair);
        array_set(&c.table, i, cos(angle)), array_set(&c.table, i + 1, sin(angle));
    }
    return c;
}

static void check_shape(const CpuKernels *kernels, QkvShape shape, bool with_values,
                        bool in_place) {
    Case c = make_case(kernels, shape, shape.T);
    c.with_values = with_values, c.in_place = in_place;
    same_for_all_threads(run, &c);
    loss(&c);
    array_check("out", &c.out, 1e-6, 2e-6);
    array_check("rstd", &c.rstd, 1e-6, 0);
    reference_backward(&c);
    check_gradient("projected", c.projected.exact, c.dprojected.exact, c.projected.count, loss, &c);
    check_gradient("gates", c.gates.exact, c.dgates.exact, with_values ? c.gates.count : 0, loss,
                   &c);
    /* The kernel has the output as it was rounded. */
    for (int64_t i = 0; i < c.out.count; i++) c.out.exact[i] = array_get(&c.out, i);
    reference_backward(&c);
    array_check("dprojected", &c.dprojected, 2e-6, 1e-5);
    if (with_values) {
        array_check("dvalues", &c.dvalues, 1e-6, 0);
        array_check("dgates", &c.dgates, 1e-6, 1e-5);
    }
    release_arrays();
}

static void check(const CpuKernels *kernels) {
    static const int64_t dims[] = {2, 10, 64, 112, 128, 256};
    for (int d = 0; d < 6; d++)
        for (int variant = 0; variant < 4; variant++) {
            const bool with_values = variant & 1, in_place = variant & 2;
            check_shape(kernels, (QkvShape){1, 1, 1, 1, dims[d], 1e-5f, 1.2f}, with_values,
                        in_place);
            check_shape(kernels, (QkvShape){14, 7, 4, 2, dims[d], 1e-5f, 1.2f}, with_values,
                        in_place);
            check_shape(kernels, (QkvShape){43, 43, 3, 3, dims[d], 1e-5f, 1}, with_values,
                        in_place);
        }
}

static void test_qkv(void **state) {
    (void)state;
    for_each_instance(check);
}

/* Branches begin anew at the position where the row goes on. */
static void check_positions(const CpuKernels *kernels) {
    Case c = make_case(kernels, (QkvShape){9, 9, 2, 1, 64, 1e-5f, 1.2f}, 20);
    c.with_values = true, c.position = 11;
    same_for_all_threads(run, &c);
    loss(&c);
    array_check("out behind a position", &c.out, 1e-6, 2e-6);
    c.branch_start = (int32_t[]){0, 0, 2, 2, 2, 5, 6, 6, 6};
    same_for_all_threads(run, &c);
    loss(&c);
    array_check("out of branches", &c.out, 1e-6, 2e-6);
    release_arrays();
}

static void test_positions(void **state) {
    (void)state;
    for_each_instance(check_positions);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qkv),
        cmocka_unit_test(test_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
