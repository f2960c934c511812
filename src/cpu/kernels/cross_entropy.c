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

/* What a logit counts as; cap 0: itself. */
static inline vfloat capped(vfloat logit, float cap) {
    return cap > 0 ? splat(cap) * vtanh(logit * splat(1 / cap)) : logit;
}

/* Capped logits, and -infinity beyond the end: e^-inf adds nothing. */
static inline vfloat logits_load(const Storage *row, int64_t v, int64_t V, float cap) {
    if (v + W <= V) return capped(vload(row + v), cap);
    return lanes_or(capped(vload_part(row + v, V - v), cap), V - v, -INFINITY);
}

static float logit_at(const Storage *row, int64_t v, float cap) {
    return capped(splat(storage_to_float(row[v])), cap)[0];
}

static float largest_logit(const Storage *row, int64_t start, int64_t end, float least) {
    vfloat maxima = splat(least);
    for (int64_t v = start; v < end; v += W) maxima = vmax(maxima, logits_load(row, v, end, 0));
    return vlargest(maxima);
}

/* log(sum(exp(row))). The largest logit stays the largest under a cap. */
static float log_sum_exp(const Storage *row, int64_t V, float cap) {
    float largest = -INFINITY, reference = -INFINITY, sum = 0;
    for (int64_t start = 0; start < V; start += CHUNK) {
        const int64_t end = start + CHUNK < V ? start + CHUNK : V;
        largest = largest_logit(row, start, end, largest);
        const float before = reference;
        reference = capped(splat(largest), cap)[0];
        vfloat sums = {0};
        for (int64_t v = start; v < end; v += W)
            sums += vexp(logits_load(row, v, end, cap) - splat(reference));
        sum = sum * expf(before - reference) + vsum(sums);
    }
    return reference + logf(sum);
}

/* The first of the largest; 0 where there is none. */
static int32_t best_of(const Storage *row, int64_t V) {
    const float largest = largest_logit(row, 0, V, -INFINITY);
    for (int64_t v = 0; v < V; v++)
        if (storage_to_float(row[v]) == largest) return (int32_t)v;
    return 0;
}

/* (softmax - onehot) scale c', where c' = 1 - (c / cap)^2 is the derivative of the capped logit c. */
static inline vfloat gradient_of(vfloat logit, float lse, float onehot, float scale, float cap) {
    const vfloat counted = capped(logit, cap);
    const vfloat part = cap > 0 ? counted * splat(1 / cap) : splat(0); /* of -infinity too */
    const vfloat slope = splat(scale) * (splat(1) - part * part);
    return (vexp(counted - splat(lse)) - splat(onehot)) * slope;
}

static void gradient_row(Storage *row, int64_t target, float lse, const CrossEntropyShape *shape) {
    const float scale = shape->scale, cap = shape->cap;
    const vfloat at_target = splat(storage_to_float(row[target]));
    for (int64_t v = 0; v < shape->V; v += W)
        row_store(row, v, shape->V, gradient_of(row_load(row, v, shape->V), lse, 0, scale, cap));
    row[target] = storage_from_float(gradient_of(at_target, lse, 1, scale, cap)[0]);
    memset(row + shape->V, 0, (size_t)(shape->stride - shape->V) * sizeof *row);
}

void KERNEL(cross_entropy)(float *losses, void *logits, int32_t *best, const int32_t *targets,
                           CrossEntropyShape shape) {
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < shape.N; n++) {
        Storage *row = (Storage *)logits + n * shape.stride;
        if (best) best[n] = best_of(row, shape.V);
        losses[n] = 0;
        if (targets[n] < 0) {
            if (shape.gradient) memset(row, 0, (size_t)shape.stride * sizeof *row);
            continue;
        }
        const float lse = log_sum_exp(row, shape.V, shape.cap);
        losses[n] = lse - logit_at(row, targets[n], shape.cap);
        if (shape.gradient) gradient_row(row, targets[n], lse, &shape);
    }
}
