/* Attention for generation: a few new queries against the cached keys. Blocks of queries would be
 * mostly empty, so each query goes alone, its head dimension in the lanes. */
#include "base/integer.h"
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

/* Keys and values of one head that follow each other, `stride` apart. */
typedef struct Span {
    const Storage *keys, *values;
    int64_t stride, count;
} Span;

static void query_see(Query *query, Span span, int64_t D) {
    for (int64_t start = 0; start < span.count; start += CHUNK) {
        float scores[CHUNK];
        const int64_t count = smaller(CHUNK, span.count - start);
        for (int64_t j = 0; j < count; j++)
            scores[j] = query_score(query, span.keys + (start + j) * span.stride, D);
        query_softmax(query, scores, count, D);
        for (int64_t j = 0; j < count; j++)
            query_add(query, scores[j], span.values + (start + j) * span.stride, D);
    }
}

/* The new tokens of a row, and the caches. */
typedef struct Decode {
    AttentionShape shape;
    const Storage *qkv;
    const int32_t *branch_start;
    Storage *key_cache, *value_cache;
    int64_t position;
    int64_t row, stride; /* elements of a token's keys, and of all it has in qkv */
} Decode;

static int64_t branch_of(const Decode *decode, int64_t t) {
    return decode->branch_start ? decode->branch_start[t] : 0;
}

static void cache_first_branch(const Decode *decode) {
    const int64_t row = decode->row;
    for (int64_t t = 0; t < decode->shape.T && branch_of(decode, t) == 0; t++) {
        const Storage *keys = decode->qkv + t * decode->stride + decode->shape.H * decode->shape.D;
        const int64_t at = (decode->position + t) * row;
        memcpy(decode->key_cache + at, keys, (size_t)row * sizeof *keys);
        memcpy(decode->value_cache + at, keys + row, (size_t)row * sizeof *keys);
    }
}

/* The output of query head h of token t: the cached keys, which for the first branch are all, then those of
 * its own branch. */
static void decode_head(const Decode *decode, Storage *out, int64_t t, int64_t h) {
    const AttentionShape *shape = &decode->shape;
    const int64_t D = shape->D, start = branch_of(decode, t), to = decode->position + t - start;
    const int64_t from = shape->window >= 0 && to > shape->window ? to - shape->window : 0;
    const int64_t cached = start == 0 ? to + 1 : decode->position;
    const int64_t head = h / (shape->H / shape->KV) * D,
                  place = smaller(from, cached) * decode->row + head;
    Query query;
    query_start(&query, decode->qkv + t * decode->stride + h * D, D, shape->scale * log2_e);
    query_see(
        &query,
        (Span){decode->key_cache + place, decode->value_cache + place, decode->row, cached - from},
        D);
    if (start > 0) {
        const int64_t own = from > cached ? start + from - cached : start;
        const Storage *keys = decode->qkv + own * decode->stride + shape->H * D + head;
        query_see(&query, (Span){keys, keys + decode->row, decode->stride, t + 1 - own}, D);
    }
    write_rows(out, 0, query.out, 0, 1, D, 1 / query.sum);
}

void KERNEL(attention_decode)(void *out, const void *qkv, const int32_t *branch_start,
                              void *key_cache, void *value_cache, int64_t position,
                              AttentionShape shape) {
    const int64_t D = shape.D, row = shape.KV * D;
    const Decode decode = {.shape = shape,
                           .qkv = qkv,
                           .branch_start = branch_start,
                           .key_cache = key_cache,
                           .value_cache = value_cache,
                           .position = position,
                           .row = row,
                           .stride = shape.H * D + 2 * row};
    cache_first_branch(&decode);
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < shape.T * shape.H; i++)
        decode_head(&decode, (Storage *)out + i * D, i / shape.H, i % shape.H);
}
