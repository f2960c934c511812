/* Attention, backward: the weights are computed again from lse, block by block.
 *
 *     P = exp(scale Q K' - lse)    dS = P o (dO V' - delta),  delta = rowsum(dO o O)
 *     dV = P' dO    dK = scale dS' Q    dQ = scale dS K
 *
 * Every sum runs over blocks in ascending order, so the bits do not depend on which of two
 * schedules is used: a thread for each key head, with five products a block; or, when there are too
 * few of those, threads for blocks of keys (dK, dV) and then for blocks of queries (dQ), with
 * seven. */
#include <omp.h>

#include "cpu/kernels/attention.h"
#include "cpu/kernels/attention_exp.h"

typedef struct Arguments {
    Storage *dqkv;
    const Storage *dout, *out, *qkv;
    const float *lse;
    const int32_t *document_start;
    Layout layout;
} Arguments;

/* All that is packed for one (row of the batch, key head), and the gradients of its queries. Per
 * query head and block, in this order: the arrays below with a [group * blocks] in front. */
typedef struct Group {
    int64_t b, kv;
    Unit *k_left, *v_left;      /* [blocks] left factors summed over D: [BLOCK][D / UNIT] */
    Unit *k_left_keys;          /* [blocks] left factor summed over keys: [D][BLOCK / UNIT] */
    Unit *q_right, *dout_right; /* right factors summed over D: [D / UNIT][BLOCK] */
    Unit *q_rows, *dout_rows;   /* right factors summed over queries: [BLOCK / UNIT][D_padded] */
    float *lse, *delta;         /* [BLOCK]; lse in powers of two */
    float *dq;                  /* [D][BLOCK] */
    View *views;                /* [blocks] */
} Group;

/* `bytes` from *offset on, which moves behind them, to the next cache line. */
static void *take(char *base, int64_t *offset, int64_t bytes) {
    void *taken = base ? base + *offset : NULL;
    *offset += (bytes + 63) / 64 * 64;
    return taken;
}

/* Lays a group out from `base` (NULL: only counts) and returns its bytes. */
static int64_t group_layout(Group *group, char *base, const Layout *layout) {
    const int64_t blocks = layout->blocks, queries = layout->group * blocks;
    const int64_t along = layout->along * (int64_t)sizeof(Unit);
    const int64_t across = layout->across * (int64_t)sizeof(Unit);
    const int64_t lanes = BLOCK * (int64_t)sizeof(float);
    int64_t offset = 0;
    group->k_left = take(base, &offset, blocks * along);
    group->v_left = take(base, &offset, blocks * along);
    group->k_left_keys = take(base, &offset, blocks * along);
    group->q_right = take(base, &offset, queries * along);
    group->dout_right = take(base, &offset, queries * along);
    group->q_rows = take(base, &offset, queries * across);
    group->dout_rows = take(base, &offset, queries * across);
    group->lse = take(base, &offset, queries * lanes);
    group->delta = take(base, &offset, queries * lanes);
    group->dq = take(base, &offset, queries * lanes * layout->shape.D);
    group->views = take(base, &offset, blocks * (int64_t)sizeof(View));
    return offset;
}

static int64_t group_bytes(const Layout *layout) {
    return group_layout(&(Group){0}, NULL, layout);
}

static Group group_at(void *workspace, int64_t slot, const Layout *layout, int64_t index) {
    Group group = {.b = index / layout->shape.KV, .kv = index % layout->shape.KV};
    group_layout(&group, (char *)workspace + slot * group_bytes(layout), layout);
    return group;
}

/* ---- packing ---- */

static void pack_keys(const Group *group, const Arguments *args, int64_t block) {
    const Layout *layout = &args->layout;
    const AttentionShape shape = layout->shape;
    const int64_t rows = block_rows(layout, block), at = block * layout->along;
    const Storage *k = args->qkv + (group->b * shape.T + block * BLOCK) * layout->stride +
                       (shape.H + group->kv) * shape.D;
    pack_left_along(group->k_left + at, k, layout->stride, rows, BLOCK, shape.D);
    pack_left_along(group->v_left + at, k + shape.KV * shape.D, layout->stride, rows, BLOCK,
                    shape.D);
    pack_left_across(group->k_left_keys + at, k, layout->stride, rows, BLOCK, shape.D);
}

static float row_dot(const Storage *x, const Storage *y, int64_t n) {
    vfloat sum = {0};
    for (int64_t i = 0; i < n; i += W) sum += load_columns(x, i, n) * load_columns(y, i, n);
    return vsum(sum);
}

/* Lanes behind T get lse = inf, so that their weights are 0. */
static void pack_queries(const Group *group, const Arguments *args, int64_t g, int64_t block) {
    const Layout *layout = &args->layout;
    const AttentionShape shape = layout->shape;
    const int64_t rows = block_rows(layout, block), index = g * layout->blocks + block;
    const int64_t h = group->kv * layout->group + g, width = shape.H * shape.D;
    const int64_t t = group->b * shape.T + block * BLOCK;
    const Storage *dout = args->dout + t * width + h * shape.D,
                  *out = args->out + t * width + h * shape.D;
    const Storage *q = args->qkv + t * layout->stride + h * shape.D;
    const int64_t along = index * layout->along, across = index * layout->across;
    pack_right_along(group->q_right + along, q, layout->stride, rows, BLOCK, shape.D);
    pack_right_across(group->q_rows + across, q, layout->stride, rows, BLOCK, shape.D);
    pack_right_along(group->dout_right + along, dout, width, rows, BLOCK, shape.D);
    pack_right_across(group->dout_rows + across, dout, width, rows, BLOCK, shape.D);
    const float *lse = args->lse + (group->b * shape.H + h) * shape.T + block * BLOCK;
    for (int64_t i = 0; i < BLOCK; i++) {
        bool inside = i < rows;
        group->lse[index * BLOCK + i] = inside ? lse[i] * log2_e : INFINITY;
        group->delta[index * BLOCK + i] =
            inside ? row_dot(dout + i * width, out + i * width, shape.D) : 0;
    }
}

static void pack_block(const Group *group, const Arguments *args, int64_t block) {
    pack_keys(group, args, block);
    for (int64_t g = 0; g < args->layout.group; g++) pack_queries(group, args, g, block);
}

static void find_view(const Group *group, const Arguments *args, int64_t block) {
    const AttentionShape shape = args->layout.shape;
    const int32_t *document_start = args->document_start;
    group->views[block] =
        attention_view(shape, document_start ? document_start + group->b * shape.T : NULL, block);
}

/* ---- one block of keys and one of queries ---- */

/* The weights and the gradient of the scores, packed for the products that follow. */
typedef struct Tile {
    _Alignas(64) Unit weights[BLOCK][BLOCK / UNIT]; /* left factor summed over queries, [keys] */
    Unit dscores[BLOCK][BLOCK / UNIT];              /* the same */
    Unit dscores_right[BLOCK / UNIT][BLOCK];        /* right factor summed over keys, [queries] */
} Tile;

static void store_units(Unit *to, vunit units) {
    memcpy(to, &units, sizeof units);
}

/* From scores and dO V' to a part of a tile: UNIT keys and UNIT vectors of queries at a time. */
static void tile_gradient(Tile *tile, float (*scores)[BLOCK], float (*dweights)[BLOCK], Part part,
                          const float *lse, const float *delta, float scale) {
    for (int q = part.query; q < part.query + part.queries; q += UNIT * W)
        for (int j = part.key; j < part.key + part.keys; j += UNIT) {
            vfloat dscores[UNIT][UNIT]; /* by vector of queries, by key */
            for (int u = 0; u < UNIT; u++) {
                vfloat weight[UNIT], dscore[UNIT];
                for (int v = 0; v < UNIT; v++) {
                    const int at = q + v * W;
                    vfloat power =
                        vload_f32(&scores[j + u][at]) * splat(scale) - vload_f32(lse + at);
                    weight[v] = weight_exp2(vmin(splat(0), power)); /* above 0 by rounding only */
                    dscore[v] =
                        weight[v] * (vload_f32(&dweights[j + u][at]) - vload_f32(delta + at));
                    dscores[v][u] = dscore[v];
                }
                store_units(&tile->weights[j + u][q / UNIT], units_along(weight));
                store_units(&tile->dscores[j + u][q / UNIT], units_along(dscore));
            }
            for (int v = 0; v < UNIT; v++)
                store_units(&tile->dscores_right[j / UNIT][q + v * W], units_across(dscores[v]));
        }
}

/* query: g * blocks + its block */
static void compute_tile(Tile *tile, const Group *group, const Layout *layout, int64_t query,
                         int64_t key_block, Part part) {
    const int64_t k = layout->shape.D / UNIT, keys = key_block * layout->along + part.key * k;
    const int64_t queries = query * layout->along + part.query;
    const View *view = &group->views[query % layout->blocks];
    _Alignas(64) float scores[BLOCK][BLOCK], dweights[BLOCK][BLOCK];
    product(&scores[part.key][part.query], BLOCK, (Factor){group->k_left + keys, k},
            (Factor){group->q_right + queries, BLOCK}, part.keys, part.queries, k, false);
    product(&dweights[part.key][part.query], BLOCK, (Factor){group->v_left + keys, k},
            (Factor){group->dout_right + queries, BLOCK}, part.keys, part.queries, k, false);
    if (!view_sees_all(view, key_block)) mask_part(scores, view, key_block, part);
    tile_gradient(tile, scores, dweights, part, group->lse + query * BLOCK,
                  group->delta + query * BLOCK, layout->shape.scale * log2_e);
}

/* dk[key ..] += the products of the part's dscores and queries; dv the same of weights and dO */
static void add_dk_dv(float *dk, float *dv, const Group *group, const Tile *tile,
                      const Layout *layout, int64_t query, Part part) {
    const int64_t padded = layout->D_padded, first = part.query / UNIT;
    const int64_t at = query * layout->across + first * padded;
    product(dv + part.key * padded, padded, (Factor){&tile->weights[part.key][first], BLOCK / UNIT},
            (Factor){group->dout_rows + at, padded}, part.keys, padded, part.queries / UNIT, true);
    product(dk + part.key * padded, padded, (Factor){&tile->dscores[part.key][first], BLOCK / UNIT},
            (Factor){group->q_rows + at, padded}, part.keys, padded, part.queries / UNIT, true);
}

static void add_dq(const Group *group, const Tile *tile, const Layout *layout, int64_t query,
                   int64_t key_block, Part part) {
    const int64_t D = layout->shape.D, first = part.key / UNIT;
    product(group->dq + query * D * BLOCK + part.query, BLOCK,
            (Factor){group->k_left_keys + key_block * layout->along + first, BLOCK / UNIT},
            (Factor){&tile->dscores_right[first][part.query], BLOCK}, D, part.queries,
            part.keys / UNIT, true);
}

/* ---- the schedules' pieces ---- */

/* dK and dV of a block of keys; with_dq: also adds to dQ of all queries that see it. */
static void key_block_gradient(const Group *group, const Arguments *args, int64_t key_block,
                               bool with_dq) {
    const Layout *layout = &args->layout;
    const AttentionShape shape = layout->shape;
    const int64_t padded = layout->D_padded, blocks = layout->blocks;
    _Alignas(64) float dk[BLOCK * MAX_D], dv[BLOCK * MAX_D];
    memset(dk, 0, (size_t)(BLOCK * padded) * sizeof *dk);
    memset(dv, 0, (size_t)(BLOCK * padded) * sizeof *dv);
    Tile tile;
    for (int64_t g = 0; g < layout->group; g++)
        for (int64_t block = key_block; block < blocks; block++) {
            const View *view = &group->views[block];
            const int64_t query = g * blocks + block;
            Part parts[2];
            if (!view_sees(view, key_block)) break; /* nor does any later block */
            const int count = view_parts(view, key_block, parts);
            for (int i = 0; i < count; i++) {
                compute_tile(&tile, group, layout, query, key_block, parts[i]);
                add_dk_dv(dk, dv, group, &tile, layout, query, parts[i]);
                if (with_dq) add_dq(group, &tile, layout, query, key_block, parts[i]);
            }
        }
    const int64_t rows = block_rows(layout, key_block);
    Storage *to = args->dqkv + (group->b * shape.T + key_block * BLOCK) * layout->stride +
                  (shape.H + group->kv) * shape.D;
    write_rows(to, layout->stride, dk, padded, rows, shape.D, shape.scale);
    write_rows(to + shape.KV * shape.D, layout->stride, dv, padded, rows, shape.D, 1);
}

static void clear_dq(const Group *group, const Layout *layout, int64_t query) {
    const int64_t size = layout->shape.D * BLOCK;
    memset(group->dq + query * size, 0, (size_t)size * sizeof *group->dq);
}

static void write_dq(const Group *group, const Arguments *args, int64_t query) {
    const Layout *layout = &args->layout;
    const AttentionShape shape = layout->shape;
    const int64_t block = query % layout->blocks;
    const int64_t h = group->kv * layout->group + query / layout->blocks;
    float scales[BLOCK];
    for (int i = 0; i < BLOCK; i++) scales[i] = shape.scale;
    write_transposed(args->dqkv + (group->b * shape.T + block * BLOCK) * layout->stride +
                         h * shape.D,
                     layout->stride, group->dq + query * shape.D * BLOCK, BLOCK,
                     block_rows(layout, block), shape.D, scales);
}

static void query_block_gradient(const Group *group, const Arguments *args, int64_t query) {
    const Layout *layout = &args->layout;
    const View *view = &group->views[query % layout->blocks];
    Tile tile;
    clear_dq(group, layout, query);
    for (int64_t block = view->from / BLOCK; block * BLOCK < view->to; block++) {
        Part parts[2];
        const int count = view_parts(view, block, parts);
        for (int i = 0; i < count; i++) {
            compute_tile(&tile, group, layout, query, block, parts[i]);
            add_dq(group, &tile, layout, query, block, parts[i]);
        }
    }
    write_dq(group, args, query);
}

/* ---- the schedules ---- */

/* A block is packed when the first block of keys that it sees comes up, and its dQ is written after
 * the last, which is itself: within a window all of it stays in the cache. */
static void group_gradient(const Group *group, const Arguments *args) {
    const Layout *layout = &args->layout;
    const int64_t blocks = layout->blocks;
    for (int64_t block = 0; block < blocks; block++) find_view(group, args, block);
    for (int64_t block = 0, packed = 0; block < blocks; block++) {
        for (; packed < blocks && (packed <= block || view_sees(&group->views[packed], block));
             packed++) {
            pack_block(group, args, packed);
            for (int64_t g = 0; g < layout->group; g++)
                clear_dq(group, layout, g * blocks + packed);
        }
        key_block_gradient(group, args, block, true);
        for (int64_t g = 0; g < layout->group; g++) write_dq(group, args, g * blocks + block);
    }
}

static void backward_by_groups(const Arguments *args, void *workspace, int64_t groups) {
    const int slots = (int)group_slots(groups, false);
#pragma omp parallel for schedule(dynamic) num_threads(slots)
    for (int64_t i = 0; i < groups; i++) {
        Group group = group_at(workspace, omp_get_thread_num(), &args->layout, i);
        group_gradient(&group, args);
    }
}

static void backward_by_blocks(const Arguments *args, void *workspace, int64_t groups) {
    const Layout *layout = &args->layout;
    const int64_t blocks = layout->blocks, queries = layout->group * blocks;
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < groups * blocks; i++) {
            Group group = group_at(workspace, i / blocks, layout, i / blocks);
            pack_block(&group, args, i % blocks);
            find_view(&group, args, i % blocks);
        }
#pragma omp for schedule(dynamic) nowait
        for (int64_t i = 0; i < groups * blocks; i++) {
            Group group = group_at(workspace, i / blocks, layout, i / blocks);
            key_block_gradient(&group, args, i % blocks, false);
        }
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < groups * queries; i++) {
            Group group = group_at(workspace, i / queries, layout, i / queries);
            query_block_gradient(&group, args, i % queries);
        }
    }
}

void KERNEL(attention_backward)(void *dqkv, const void *dout, const void *out, const float *lse,
                                const void *qkv, const int32_t *document_start, void *workspace,
                                AttentionShape shape) {
    const Arguments args = {dqkv, dout, out, qkv, lse, document_start, attention_layout(shape)};
    const int64_t groups = shape.B * shape.KV;
    if (backward_shares_blocks(groups))
        backward_by_blocks(&args, workspace, groups);
    else
        backward_by_groups(&args, workspace, groups);
}

size_t KERNEL(attention_workspace)(AttentionShape shape) {
    const Layout layout = attention_layout(shape);
    const int64_t groups = shape.B * shape.KV;
    const int64_t backward =
        group_slots(groups, backward_shares_blocks(groups)) * group_bytes(&layout);
    const int64_t forward =
        group_slots(groups, forward_shares_blocks(groups)) * attention_forward_bytes(&layout);
    return (size_t)(forward > backward ? forward : backward);
}
