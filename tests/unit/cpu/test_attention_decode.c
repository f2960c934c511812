/* Attention for generation, of every instance against the definition in double precision: token by token,
 * in pieces and in branches. */
#include "attention_case.h"

#include <omp.h>

enum { MOST = 32, PADDING = 5 }; /* branches; places in the caches behind those that are written */

/* A row of new tokens behind `position` cached ones: branches of these lengths, or no branches (0). */
typedef struct Row {
    AttentionShape shape; /* T: the new tokens */
    Dtype storage;
    int64_t position, branches, lengths[MOST];
} Row;

/* What a row is made from and what must come out; all tokens, cached ones first, in qkv. */
typedef struct Values {
    double *qkv, *out; /* out: of the new tokens */
    char *stored;      /* qkv in the storage type */
    int32_t *branch_start;
    int64_t stride, width, cache; /* numbers of a token in qkv, in out, in a cache */
    int64_t size;                 /* bytes of a number */
} Values;

/* Adds key s to the softmax of a query, relative to a score of 0: scores are small here. */
static double add_key(double *out, const double *q, const double *key, const double *value,
                      const AttentionShape *shape) {
    double score = 0;
    for (int64_t d = 0; d < shape->D; d++) score += q[d] * key[d];
    const double weight = exp(score * (double)shape->scale);
    for (int64_t d = 0; d < shape->D; d++) out[d] += weight * value[d];
    return weight;
}

/* Query head h of new token t: the cached keys, then those of its branch, within the window. */
static void expect_head(const Row *row, Values *v, int64_t t, int64_t h) {
    const AttentionShape *shape = &row->shape;
    const int64_t D = shape->D, start = v->branch_start ? v->branch_start[t] : 0;
    const int64_t position = row->position + t - start, kv = h / (shape->H / shape->KV);
    const double *q = v->qkv + (row->position + t) * v->stride + h * D;
    double *out = v->out + t * v->width + h * D, sum = 0;
    for (int64_t s = 0; s < row->position + shape->T; s++) {
        const int64_t at = s < row->position ? s : s - start;
        const bool own = s >= row->position + start && s <= row->position + t;
        const double *key = v->qkv + s * v->stride + (shape->H + kv) * D;
        if (s >= row->position && !own) continue;
        if (shape->window >= 0 && position - at > shape->window) continue;
        sum += add_key(out, q, key, key + v->cache, shape);
    }
    for (int64_t d = 0; d < D; d++) out[d] /= sum;
}

static Values row_values(const Row *row) {
    const AttentionShape *shape = &row->shape;
    Values v = {.stride = (shape->H + 2 * shape->KV) * shape->D,
                .width = shape->H * shape->D,
                .cache = shape->KV * shape->D,
                .size = dtype_size(row->storage)};
    const int64_t count = (row->position + shape->T) * v.stride;
    v.qkv = must((size_t)count, sizeof *v.qkv);
    v.out = must((size_t)(shape->T * v.width), sizeof *v.out);
    for (int64_t i = 0; i < count; i++)
        v.qkv[i] = rounded(0.5 * (double)random_normal(1, 0, (uint64_t)i), row->storage);
    v.stored = to_storage(v.qkv, count, row->storage);
    if (row->branches) v.branch_start = must((size_t)shape->T, sizeof *v.branch_start);
    for (int64_t branch = 0, t = 0, start = 0; branch < row->branches; branch++, start = t)
        for (; t < start + row->lengths[branch]; t++) v.branch_start[t] = (int32_t)start;
    for (int64_t t = 0; t < shape->T; t++)
        for (int64_t h = 0; h < shape->H; h++) expect_head(row, &v, t, h);
    return v;
}

static void row_values_free(Values *v) {
    free(v->qkv), free(v->out), free(v->stored), free(v->branch_start);
}

static void check_out(const Row *row, const Values *v, const CpuKernels *kernels, const char *out) {
    const double tolerance = row->storage == DTYPE_BF16 ? 0.02 : 3e-6;
    for (int64_t i = 0; i < row->shape.T * v->width; i++) {
        const double actual = from_storage(out, i, row->storage), wanted = v->out[i];
        if (!(fabs(actual - wanted) <= tolerance * (1 + fabs(wanted))))
            fail_msg("%s %s position=%d T=%d branches=%d D=%d window=%d: token %d: %g, not %g",
                     kernels->isa, dtype_name(row->storage), (int)row->position, (int)row->shape.T,
                     (int)row->branches, (int)row->shape.D, (int)row->shape.window,
                     (int)(i / v->width), actual, wanted);
    }
}

/* The caches of a row hold its cached tokens and its first branch, and NaN behind them. */
typedef struct Caches {
    char *keys, *values;
    int64_t places;
} Caches;

static Caches caches_with(const Row *row, const Values *v, int64_t tokens) {
    const int64_t bytes = v->cache * v->size, places = row->position + row->shape.T + PADDING;
    Caches caches = {must((size_t)places, (size_t)bytes), must((size_t)places, (size_t)bytes),
                     places};
    memset(caches.keys, 0xff, (size_t)(places * bytes));
    memset(caches.values, 0xff, (size_t)(places * bytes));
    for (int64_t t = 0; t < tokens; t++) {
        const char *keys = v->stored + (t * v->stride + v->width) * v->size;
        memcpy(caches.keys + t * bytes, keys, (size_t)bytes);
        memcpy(caches.values + t * bytes, keys + bytes, (size_t)bytes);
    }
    return caches;
}

static void caches_free(Caches *caches) {
    free(caches->keys), free(caches->values);
}

static void check_caches(const Row *row, const Values *v, const Caches *caches) {
    const int64_t first = row->branches ? row->lengths[0] : row->shape.T;
    Caches wanted = caches_with(row, v, row->position + first);
    const size_t bytes = (size_t)(caches->places * v->cache * v->size);
    assert_memory_equal(caches->keys, wanted.keys, bytes);
    assert_memory_equal(caches->values, wanted.values, bytes);
    caches_free(&wanted);
}

/* Runs the row in pieces of `piece` tokens: one piece where there are branches. */
static void check_run(const Row *row, const Values *v, const CpuKernels *kernels, int64_t piece,
                      char *out) {
    Caches caches = caches_with(row, v, row->position);
    for (int64_t t = 0; t < row->shape.T; t += piece) {
        AttentionShape part = row->shape;
        part.T = t + piece < row->shape.T ? piece : row->shape.T - t;
        kernels->attention_decode(
            out + t * v->width * v->size, v->stored + (row->position + t) * v->stride * v->size,
            v->branch_start, caches.keys, caches.values, row->position + t, part);
    }
    check_out(row, v, kernels, out);
    check_caches(row, v, &caches);
    caches_free(&caches);
}

/* Every instance, with one thread and with three, which give the same bits. */
static void check(Row row, int64_t piece) {
    row.shape.scale = 1 / sqrtf((float)row.shape.D);
    for (int storage = DTYPE_F32; storage <= DTYPE_BF16; storage++) {
        row.storage = (Dtype)storage;
        Values v = row_values(&row);
        const size_t bytes = (size_t)(row.shape.T * v.width * v.size);
        char *one = must(bytes, 1), *three = must(bytes, 1);
        for (int i = 0; i < ATTENTION_ISAS; i++) {
            const CpuKernels *kernels = attention_kernels(attention_isas[i], row.storage);
            if (!kernels) continue;
            omp_set_num_threads(1);
            check_run(&row, &v, kernels, piece, one);
            omp_set_num_threads(3);
            check_run(&row, &v, kernels, piece, three);
            assert_memory_equal(one, three, bytes);
        }
        free(one), free(three);
        row_values_free(&v);
    }
}

static void test_pieces(void **state) {
    (void)state;
    const int64_t dims[] = {64, 112, 10}, windows[] = {-1, 0, 40};
    for (int j = 0; j < 9; j++) {
        const Row row = {.shape = {1, 100, 4, 2, dims[j % 3], windows[j / 3], 0}};
        check(row, 33);
        check(row, 1);
    }
}

/* New tokens and cached ones that end within, at and behind a block or half of one; windows of none of them,
 * of some and of all. */
static void test_edges_of_blocks(void **state) {
    (void)state;
    const int64_t tokens[] = {2, 31, 32, 33, 64, 65, 128, 130};
    const int64_t positions[] = {0, 1, 33, 64, 131}, windows[] = {-1, 0, 1, 33, 64, 150};
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < 5; j++)
            for (size_t k = 0; k < 2; k++) {
                const Row row = {.shape = {1, tokens[i], 2, 1, 18, windows[(i + j + 3 * k) % 6], 0},
                                 .position = positions[j]};
                check(row, tokens[i]);
            }
}

/* Windows that end in the branch, reach partly into the cache, and beyond its beginning. */
static void test_branches(void **state) {
    (void)state;
    const int64_t windows[] = {-1, 2, 30, 100}, positions[] = {0, 70};
    for (int j = 0; j < 8; j++) {
        const int64_t D = j % 2 ? 64 : 10;
        const Row row = {.shape = {1, 3 + 1 + 70 + 9, 4, 2, D, windows[j % 4], 0},
                         .position = positions[j / 4],
                         .branches = 4,
                         .lengths = {3, 1, 70, 9}};
        check(row, row.shape.T);
    }
}

/* Branches of 1 to 5 tokens: up to thirty in a block. */
static void test_many_branches(void **state) {
    (void)state;
    const int64_t windows[] = {-1, 3, 64};
    for (int j = 0; j < 3; j++) {
        Row row = {.shape = {1, 0, 2, 1, 64, windows[j], 0}, .position = 67, .branches = MOST};
        for (int i = 0; i < MOST; i++) row.shape.T += row.lengths[i] = i < 20 ? 1 + i % 3 : 5;
        check(row, row.shape.T);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_edges_of_blocks),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_many_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
