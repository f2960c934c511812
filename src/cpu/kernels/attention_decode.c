/* Attention for generation: a few new queries against the cached keys. Blocks of queries would be
 * mostly empty, so each query goes alone, its head dimension in the lanes. */
#include "cpu/kernels/attention.h"

enum { CHUNK = 64 }; /* keys between two updates of the running softmax */

typedef struct Query {
    float q[MAX_D], out[MAX_D]; /* padded with zeros to whole vectors */
    float largest, sum;
} Query;

static void query_start(Query *query, const Storage *q, int64_t D, float scale) {
    *query = (Query){.largest = -FLT_MAX};
    for (int64_t d = 0; d < D; d += W)
        vstore_f32(query->q + d, load_columns(q, d, D) * splat(scale));
}

static float query_score(const Query *query, const Storage *key, int64_t D) {
    vfloat sum = {0};
    for (int64_t d = 0; d < D; d += W) sum += vload_f32(query->q + d) * load_columns(key, d, D);
    return vsum(sum);
}

/* Scores become weights; the sums so far are rescaled to the new maximum. */
static void query_softmax(Query *query, float scores[CHUNK], int64_t keys, int64_t D) {
    float largest = query->largest;
    for (int64_t j = 0; j < keys; j++) largest = scores[j] > largest ? scores[j] : largest;
    const float correction = vexp2(splat(query->largest - largest))[0];
    query->largest = largest;
    query->sum *= correction;
    for (int64_t d = 0; d < D; d++) query->out[d] *= correction;
    for (int64_t j = keys; j < CHUNK; j++) scores[j] = -INFINITY;
    vfloat sum = {0};
    for (int64_t j = 0; j < CHUNK; j += W) {
        vfloat weight = vexp2(vload_f32(scores + j) - splat(largest));
        vstore_f32(scores + j, weight);
        sum += weight;
    }
    query->sum += vsum(sum);
}

static void query_add(Query *query, float weight, const Storage *value, int64_t D) {
    for (int64_t d = 0; d < D; d += W) {
        float *at = query->out + d;
        vstore_f32(at, vload_f32(at) + splat(weight) * load_columns(value, d, D));
    }
}

/* The output of one query head over keys from .. to. */
static void decode_head(Storage *out, const Storage *q, const Storage *keys, const Storage *values,
                        int64_t from, int64_t to, AttentionShape shape) {
    const int64_t D = shape.D, stride = shape.KV * D;
    Query query;
    query_start(&query, q, D, shape.scale * log2_e);
    for (int64_t start = from; start <= to; start += CHUNK) {
        float scores[CHUNK];
        int64_t count = to + 1 - start < CHUNK ? to + 1 - start : CHUNK;
        for (int64_t j = 0; j < count; j++)
            scores[j] = query_score(&query, keys + (start + j) * stride, D);
        query_softmax(&query, scores, count, D);
        for (int64_t j = 0; j < count; j++)
            query_add(&query, scores[j], values + (start + j) * stride, D);
    }
    write_rows(out, 0, query.out, 0, 1, D, 1 / query.sum);
}

void KERNEL(attention_decode)(void *out, const void *qkv, const int32_t *branch_start,
                              void *key_cache, void *value_cache, int64_t position,
                              AttentionShape shape) {
    (void)branch_start;
    const int64_t D = shape.D, row = shape.KV * D, stride = shape.H * D + 2 * row;
    const int64_t group = shape.H / shape.KV;
    Storage *keys = key_cache, *values = value_cache;
    for (int64_t t = 0; t < shape.T; t++) {
        const Storage *from = (const Storage *)qkv + t * stride + shape.H * D;
        memcpy(keys + (position + t) * row, from, (size_t)row * sizeof *keys);
        memcpy(values + (position + t) * row, from + row, (size_t)row * sizeof *values);
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < shape.T * shape.H; i++) {
        const int64_t t = i / shape.H, h = i % shape.H, to = position + t;
        const int64_t from = shape.window >= 0 && to > shape.window ? to - shape.window : 0;
        decode_head((Storage *)out + i * D, (const Storage *)qkv + t * stride + h * D,
                    keys + h / group * D, values + h / group * D, from, to, shape);
    }
}
