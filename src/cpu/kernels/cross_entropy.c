/* Cross-entropy and its gradient in place, a row of logits to a thread. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

#include <math.h>

/* A row is read in chunks that stay in the first cache, for their maximum and then for their sum of
 * exponentials: memory is passed over once for the loss and once for the gradient. */
enum { CHUNK = 1024 };

static inline vfloat lanes_or(vfloat x, int64_t count, float otherwise) {
    vint lane;
    for (int i = 0; i < W; i++) lane[i] = i;
    return vselect(lane < splat_int((int32_t)count), x, splat(otherwise));
}

/* As row_load(), with -infinity beyond the end: e^-inf adds nothing. */
static inline vfloat logits_load(const Storage *row, int64_t v, int64_t V) {
    return v + W <= V ? vload(row + v) : lanes_or(vload_part(row + v, V - v), V - v, -INFINITY);
}

/* log(sum(exp(row))) */
static float log_sum_exp(const Storage *row, int64_t V) {
    float largest = -INFINITY, sum = 0;
    for (int64_t start = 0; start < V; start += CHUNK) {
        int64_t end = start + CHUNK < V ? start + CHUNK : V;
        vfloat maxima = splat(largest), sums = {0};
        for (int64_t v = start; v < end; v += W) maxima = vmax(maxima, logits_load(row, v, V));
        float before = largest;
        largest = vlargest(maxima);
        for (int64_t v = start; v < end; v += W)
            sums += vexp(logits_load(row, v, V) - splat(largest));
        sum = sum * expf(before - largest) + vsum(sums);
    }
    return largest + logf(sum);
}

static void gradient_row(Storage *row, int64_t target, float lse, int64_t V, float scale) {
    float at_target = storage_to_float(row[target]);
    for (int64_t v = 0; v < V; v += W)
        row_store(row, v, V, vexp(row_load(row, v, V) - splat(lse)) * splat(scale));
    row[target] = storage_from_float((expf(at_target - lse) - 1) * scale);
}

void KERNEL(cross_entropy)(float *losses, void *logits, int32_t *best, const int32_t *targets,
                           CrossEntropyShape shape) {
    const int64_t n = shape.N, V = shape.V;
    const float scale = shape.scale;
    const bool gradient = shape.gradient;
    (void)best;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        Storage *row = (Storage *)logits + i * V;
        losses[i] = 0;
        if (targets[i] < 0) {
            if (gradient) memset(row, 0, (size_t)V * sizeof *row);
            continue;
        }
        float lse = log_sum_exp(row, V);
        losses[i] = lse - storage_to_float(row[targets[i]]);
        if (gradient) gradient_row(row, targets[i], lse, V, scale);
    }
}
