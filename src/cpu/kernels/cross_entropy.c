/* Cross-entropy and its gradient in place, a row of logits to a thread. */
#include <math.h>
#include <omp.h>

#include "base/integer.h"
#include "base/threads.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

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

/* Vectors that go through each stage together: one alone would keep the units waiting for its chain of
 * dependent instructions. */
enum { GROUP = 8 };

/* Under a cap a logit z counts as c = cap tanh(z / cap) = cap - 2 cap d, where d = 1 / (1 + e^(2 z / cap)),
 * and c' = 4 d (1 - d). No c exceeds the cap, so that its exponential needs no search for the largest.
 * Adds up e^(c - cap) of some vectors from v on; parts become these times c' / 4. */
static inline vfloat capped_group(float *parts, const Storage *row, int64_t v, int64_t V, float cap,
                                  int vectors) {
    vfloat d[GROUP], sum = {0};
    for (int i = 0; i < vectors; i++) d[i] = vexp(row_load(row, v + i * W, V) * splat(2 / cap));
    for (int i = 0; i < vectors; i++) d[i] = splat(1) / (splat(1) + d[i]);
    for (int i = 0; i < vectors; i++) {
        const vfloat share = vexp(d[i] * splat(-2 * cap));
        row_store_f32(parts, v + i * W, V, share * (d[i] - d[i] * d[i]));
        sum += lanes_or(share, V - v - i * W, 0);
    }
    return sum;
}

/* As plain_row(), the gradient times c'. parts: room for V. */
static float capped_row(Storage *row, int64_t target, float *parts,
                        const CrossEntropyShape *shape) {
    const int64_t V = shape->V;
    const float logit = storage_to_float(row[target]), cap = shape->cap;
    vfloat sums = {0};
    int64_t v = 0;
    for (; v + GROUP * W <= V; v += GROUP * W) sums += capped_group(parts, row, v, V, cap, GROUP);
    for (; v < V; v += W) sums += capped_group(parts, row, v, V, cap, 1);
    const float sum = vsum(sums), d = 1 / (1 + expf(logit * (2 / cap)));
    const float loss = logf(sum) + 2 * cap * d;
    if (!shape->gradient) return loss;
    const vfloat scale = splat(4 * shape->scale / sum);
    for (v = 0; v < V; v += W) row_store(row, v, V, row_load_f32(parts, v, V) * scale);
    row[target] = storage_from_float((expf(-loss) - 1) * shape->scale * 4 * (d - d * d));
    return loss;
}

/* Each thread's parts begin with a cache line. */
static int64_t parts_stride(int64_t V) {
    return divide_up(V, 16) * 16;
}

static float *parts_of_thread(void *workspace, int64_t V) {
    return (float *)workspace + omp_get_thread_num() * parts_stride(V);
}

size_t KERNEL(cross_entropy_workspace)(CrossEntropyShape shape) {
    if (shape.cap <= 0) return 0;
    return (size_t)thread_count() * (size_t)parts_stride(shape.V) * sizeof(float);
}

void KERNEL(cross_entropy)(float *losses, void *logits, int32_t *best, const int32_t *targets,
                           void *workspace, CrossEntropyShape shape) {
#pragma omp parallel for schedule(static) num_threads(thread_count())
    for (int64_t n = 0; n < shape.N; n++) {
        Storage *row = (Storage *)logits + n * shape.stride;
        if (best) best[n] = best_of(row, shape.V);
        losses[n] = 0;
        if (targets[n] >= 0)
            losses[n] = shape.cap > 0 ? capped_row(row, targets[n],
                                                   parts_of_thread(workspace, shape.V), &shape)
                                      : plain_row(row, targets[n], &shape);
        const int64_t kept = targets[n] >= 0 ? shape.V : 0;
        if (shape.gradient) memset(row + kept, 0, (size_t)(shape.stride - kept) * sizeof *row);
    }
}
