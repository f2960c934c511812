/* Attention for generation: new queries against the cached keys and each other's. One new query is a
 * task for each head, its head dimension in the lanes: a block of queries would be mostly empty. Of
 * several, each block of a head sees the cache and then the new keys, blocks of which it packs for
 * itself: a packed cache would take as much memory again. */
#include "cpu/kernels/attention_queries.h"

/* The new tokens of a row, and the caches. */
typedef struct Decode {
    AttentionShape shape;
    const Storage *qkv;
    const int32_t *branch_start;
    Storage *out, *key_cache, *value_cache;
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

/* Keys and values of one head that follow each other, `stride` apart. */
typedef struct Span {
    const Storage *keys, *values;
    int64_t stride;
} Span;

static Span cached_span(const Decode *decode, int64_t h) {
    const int64_t head = h / (decode->shape.H / decode->shape.KV) * decode->shape.D;
    return (Span){decode->key_cache + head, decode->value_cache + head, decode->row};
}

static Span new_span(const Decode *decode, int64_t h) {
    const AttentionShape *shape = &decode->shape;
    const Storage *keys = decode->qkv + (shape->H + h / (shape->H / shape->KV)) * shape->D;
    return (Span){keys, keys + decode->row, decode->stride};
}

/* ---- one new query ---- */

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

/* The one new token, whose keys and values are in the caches already. */
static void decode_one(const Decode *decode, int64_t h) {
    const int64_t D = decode->shape.D, window = decode->shape.window, last = decode->position;
    const Span span = cached_span(decode, h);
    Query query;
    query_start(&query, decode->qkv + h * D, D, decode->shape.scale * log2_e);
    for (int64_t start = window >= 0 ? larger(0, last - window) : 0; start <= last;
         start += CHUNK) {
        float scores[CHUNK];
        const int64_t count = smaller(CHUNK, last + 1 - start);
        for (int64_t j = 0; j < count; j++)
            scores[j] = query_score(&query, span.keys + (start + j) * span.stride, D);
        query_softmax(&query, scores, count, D);
        for (int64_t j = 0; j < count; j++)
            query_add(&query, scores[j], span.values + (start + j) * span.stride, D);
    }
    write_rows(decode->out + h * D, 0, query.out, 0, 1, D, 1 / query.sum);
}

/* ---- several ---- */

/* What a block of queries sees of the cached keys; attention_view() says what of the new ones. */
static View cached_view(const Decode *decode, int64_t block) {
    const AttentionShape *shape = &decode->shape;
    View view;
    for (int64_t i = 0; i < BLOCK; i++) {
        const int64_t t = smaller(block * BLOCK + i, shape->T - 1);
        const int64_t lowest = decode->position + t - branch_of(decode, t) - shape->window;
        view.lowest[i] = (int32_t)(shape->window >= 0 ? larger(0, lowest) : 0);
        view.highest[i] = (int32_t)(decode->position - 1);
    }
    view_limits(&view, smaller(BLOCK, shape->T - block * BLOCK));
    return view;
}

static void see_span(Queries *queries, Span span, const View *view) {
    const int64_t D = queries->D;
    _Alignas(64) Unit keys[BLOCK * MAX_D], values[BLOCK * MAX_D];
    for (int64_t block = view->from / BLOCK; block * BLOCK < view->to; block++) {
        const int64_t at = block * BLOCK * span.stride,
                      rows = smaller(BLOCK, view->to - block * BLOCK);
        pack_left_along(keys, span.keys + at, span.stride, rows, BLOCK, D);
        pack_left_across(values, span.values + at, span.stride, rows, BLOCK, D);
        queries_see(queries, keys, values, view, block);
    }
}

/* Query head h of a block of new tokens. */
static void decode_block(const Decode *decode, int64_t h, int64_t block) {
    const AttentionShape shape = decode->shape;
    const int64_t t = block * BLOCK, width = shape.H * shape.D;
    const View cached = cached_view(decode, block),
               own = attention_view(shape, decode->branch_start, block);
    Queries queries;
    queries_start(&queries, decode->qkv + t * decode->stride + h * shape.D, decode->stride,
                  smaller(BLOCK, shape.T - t), shape);
    see_span(&queries, cached_span(decode, h), &cached);
    see_span(&queries, new_span(decode, h), &own);
    queries_write(&queries, decode->out + t * width + h * shape.D, width);
}

void KERNEL(attention_decode)(void *out, const void *qkv, const int32_t *branch_start,
                              void *key_cache, void *value_cache, int64_t position,
                              AttentionShape shape) {
    const int64_t D = shape.D, row = shape.KV * D;
    const Decode decode = {.shape = shape,
                           .qkv = qkv,
                           .branch_start = branch_start,
                           .out = out,
                           .key_cache = key_cache,
                           .value_cache = value_cache,
                           .position = position,
                           .row = row,
                           .stride = shape.H * D + 2 * row};
    cache_first_branch(&decode);
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < blocks_of(shape.T) * shape.H; i++)
        if (shape.T == 1)
            decode_one(&decode, i);
        else
            decode_block(&decode, i % shape.H, i / shape.H);
}
