/* From projected heads to what attention takes: query and key heads are turned by RoPE (arXiv 2104.09864),
 * normalised by RMS (QK norm, arXiv 2010.04245) and scaled; to value heads a gated row of a table is
 * added. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/turn.h"

#include <math.h>

static float dot(const Storage *a, const Storage *b, int64_t D) {
    vfloat sum = {0};
    for (int64_t d = 0; d < D; d += W) sum = row_load(a, d, D) * row_load(b, d, D) + sum;
    return vsum(sum);
}

/* Turning leaves a head's norm as it is. */
static float forward_head(Storage *out, const Storage *x, const Angles *angles, QkvShape shape) {
    const int64_t half = shape.D / 2;
    const float rstd = 1 / sqrtf(dot(x, x, shape.D) / (float)shape.D + shape.eps);
    const vfloat factor = splat(shape.scale * rstd);
    for (int64_t i = 0; i < half; i += W) {
        vfloat x1 = load_columns(x, i, half), x2 = load_columns(x + half, i, half);
        turn(&x1, &x2, angles, i);
        row_store(out, i, half, factor * x1);
        row_store(out + half, i, half, factor * x2);
    }
    return rstd;
}

static void add_value(Storage *out, const Storage *x, float gate, const Storage *value, int64_t D) {
    for (int64_t d = 0; d < D; d += W)
        row_store(out, d, D, row_load(x, d, D) + splat(gate) * load_columns(value, d, D));
}

void KERNEL(qkv_forward)(void *out, float *rstd, const void *projected, const float *cos_sin,
                         const int32_t *branch_start, const int32_t *tokens, const void *values,
                         const float *gates, int64_t position, QkvShape shape) {
    const int64_t D = shape.D, KV = shape.KV, turned = shape.H + KV, stride = (turned + KV) * D;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < shape.N; n++) {
        const Storage *x = (const Storage *)projected + n * stride;
        Storage *to = (Storage *)out + n * stride;
        const int64_t at = position + n % shape.T - (branch_start ? branch_start[n] : 0);
        Angles angles;
        angles_load(&angles, cos_sin + at * D, D / 2, true);
        for (int64_t h = 0; h < turned; h++)
            rstd[n * turned + h] = forward_head(to + h * D, x + h * D, &angles, shape);
        to += turned * D, x += turned * D;
        if (values)
            for (int64_t kv = 0; kv < KV; kv++)
                add_value(to + kv * D, x + kv * D, gates[n * KV + kv],
                          (const Storage *)values + (tokens[n] * KV + kv) * D, D);
        else if (to != x)
            memcpy(to, x, (size_t)(KV * D) * sizeof *to);
    }
}

/* With y = scale z r and dy its gradient: dz = scale r (dy - y sum(dy y) / (scale^2 D)); then the turn is
 * undone. */
static void backward_head(Storage *dx, const Storage *dy, const Storage *y, float rstd,
                          const Angles *angles, QkvShape shape) {
    const int64_t half = shape.D / 2;
    const vfloat along = splat(dot(dy, y, shape.D) / (shape.scale * shape.scale * (float)shape.D));
    const vfloat factor = splat(shape.scale * rstd);
    for (int64_t i = 0; i < half; i += W) {
        vfloat z1 = load_columns(dy, i, half) - along * load_columns(y, i, half);
        vfloat z2 = load_columns(dy + half, i, half) - along * load_columns(y + half, i, half);
        turn(&z1, &z2, angles, i);
        row_store(dx, i, half, factor * z1);
        row_store(dx + half, i, half, factor * z2);
    }
}

/* Returns the gradient of the gate. */
static float backward_value(Storage *dvalue, const Storage *dv, float gate, const Storage *value,
                            int64_t D) {
    vfloat sum = {0};
    for (int64_t d = 0; d < D; d += W) {
        const vfloat above = load_columns(dv, d, D);
        sum = above * load_columns(value, d, D) + sum;
        row_store(dvalue, d, D, splat(gate) * above);
    }
    return vsum(sum);
}

void KERNEL(qkv_backward)(void *dprojected, void *dvalues, float *dgates, const void *dqkv,
                          const void *qkv, const float *rstd, const float *cos_sin,
                          const int32_t *tokens, const void *values, const float *gates,
                          QkvShape shape) {
    const int64_t D = shape.D, KV = shape.KV, turned = shape.H + KV, stride = (turned + KV) * D;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < shape.N; n++) {
        const Storage *above = (const Storage *)dqkv + n * stride;
        const Storage *y = (const Storage *)qkv + n * stride;
        Storage *dx = (Storage *)dprojected + n * stride;
        Angles angles;
        angles_load(&angles, cos_sin + n % shape.T * D, D / 2, false);
        for (int64_t h = 0; h < turned; h++)
            backward_head(dx + h * D, above + h * D, y + h * D, rstd[n * turned + h], &angles,
                          shape);
        dx += turned * D, above += turned * D;
        for (int64_t kv = 0; values && kv < KV; kv++)
            dgates[n * KV + kv] = backward_value(
                (Storage *)dvalues + (n * KV + kv) * D, above + kv * D, gates[n * KV + kv],
                (const Storage *)values + (tokens[n] * KV + kv) * D, D);
        if (dx != above) memcpy(dx, above, (size_t)(KV * D) * sizeof *dx);
    }
}
