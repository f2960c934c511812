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

/* Logits, and -infinity beyond the end: e^-inf adds nothing. */
static inline vfloat logits_load(const Storage *row, int64_t v, int64_t V) {
    if (v + W <= V) return vload(row + v);
    return lanes_or(vload_part(row + v, V - v), V - v, -INFINITY);
}

static float largest_logit(const Storage *row, int64_t start, int64_t end, float least) {
    vfloat maxima = splat(least);
    for (int64_t v = start; v < end; v += W) maxima = vmax(maxima, logits_load(row, v, end));
    return vlargest(maxima);
}

/* log(sum(exp(row))) */
static float log_sum_exp(const Storage *row, int64_t V) {
    float largest = -INFINITY, sum = 0;
    for (int64_t start = 0; start < V; start += CHUNK) {
        const int64_t end = start + CHUNK < V ? start + CHUNK : V;
        const float before = largest;
        largest = largest_logit(row, start, end, largest);
        vfloat sums = {0};
        for (int64_t v = start; v < end; v += W)
            sums += vexp(logits_load(row, v, end) - splat(largest));
        sum = sum * expf(before - largest) + vsum(sums);
    }
    return largest + logf(sum);
}

/* The first of the largest; 0 where there is none. */
static int32_t best_of(const Storage *row, int64_t V) {
    const float largest = largest_logit(row, 0, V, -INFINITY);
    for (int64_t v = 0; v < V; v++)
        if (storage_to_float(row[v]) == largest) return (int32_t)v;
    return 0;
}

/* The loss; the row becomes (softmax - onehot) scale where the gradient is wanted. */
static float plain_row(Storage *row, int64_t target, const CrossEntropyShape *shape) {
    const int64_t V = shape->V;
    const float lse = log_sum_exp(row, V), logit = storage_to_float(row[target]);
    if (!shape->gradient) return lse - logit;
    for (int64_t v = 0; v < V; v += W)
        row_store(row, v, V, vexp(row_load(row, v, V) - splat(lse)) * splat(shape->scale));
    const vfloat at_target = (vexp(splat(logit - lse)) - splat(1)) * splat(shape->scale);
    row[target] = storage_from_float(at_target[0]);
    return lse - logit;
}

/* Under a cap a logit z counts as c = cap tanh(z / cap) = cap - 2 cap d, with the d returned here; c' is
 * 4 d (1 - d). No c exceeds the cap, so that its exponential is known without looking for the largest. */
static inline vfloat below_cap(vfloat logit, float cap) {
    return splat(1) / (splat(1) + vexp(logit * splat(2 / cap)));
}

/* sum(exp(c - cap)) */
static float capped_sum(const Storage *row, int64_t V, float cap) {
    float sum = 0;
    for (int64_t start = 0; start < V; start += CHUNK) {
        const int64_t end = start + CHUNK < V ? start + CHUNK : V;
        vfloat sums = {0};
        for (int64_t v = start; v < end; v += W) {
            const vfloat part = vexp(below_cap(row_load(row, v, end), cap) * splat(-2 * cap));
            sums += v + W <= end ? part : lanes_or(part, end - v, 0);
        }
        sum += vsum(sums);
    }
    return sum;
}

/* As plain_row(), the gradient times c'. */
static float capped_row(Storage *row, int64_t target, const CrossEntropyShape *shape) {
    const int64_t V = shape->V;
    const float cap = shape->cap, sum = capped_sum(row, V, cap);
    const float below = below_cap(splat(storage_to_float(row[target])), cap)[0];
    const float loss = logf(sum) + 2 * cap * below;
    if (!shape->gradient) return loss;
    const vfloat scale = splat(4 * shape->scale / sum);
    for (int64_t v = 0; v < V; v += W) {
        const vfloat d = below_cap(row_load(row, v, V), cap);
        row_store(row, v, V, vexp(d * splat(-2 * cap)) * scale * (d - d * d));
    }
    const float slope = 4 * (below - below * below);
    row[target] = storage_from_float((expf(-loss) - 1) * shape->scale * slope);
    return loss;
}

void KERNEL(cross_entropy)(float *losses, void *logits, int32_t *best, const int32_t *targets,
                           CrossEntropyShape shape) {
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < shape.N; n++) {
        Storage *row = (Storage *)logits + n * shape.stride;
        if (best) best[n] = best_of(row, shape.V);
        losses[n] = 0;
        if (targets[n] >= 0)
            losses[n] = shape.cap > 0 ? capped_row(row, targets[n], &shape)
                                      : plain_row(row, targets[n], &shape);
        const int64_t kept = targets[n] >= 0 ? shape.V : 0;
        if (shape.gradient) memset(row + kept, 0, (size_t)(shape.stride - kept) * sizeof *row);
    }
}
