/* Attention, forward: for each block of queries, blocks of keys with a running softmax (arXiv
 * 2205.14135). The output is kept transposed, [D][queries], until the block is done. */
#include <omp.h>

#include "cpu/kernels/attention.h"
#include "cpu/kernels/attention_exp.h"

enum { SLACK = 8 }; /* log2 of the largest weight */

typedef struct Arguments {
    Storage *out;
    float *lse;
    const Storage *qkv;
    const int32_t *document_start;
    Layout layout;
} Arguments;

/* The packed keys and values of one (row of the batch, key head). */
typedef struct Group {
    int64_t b, kv;
    Unit *keys;   /* per block, left factor summed over D: [BLOCK][D / UNIT] */
    Unit *values; /* per block, left factor summed over keys: [D][BLOCK / UNIT] */
} Group;

static Group group_at(void *workspace, int64_t slot, const Layout *layout, int64_t index) {
    Unit *keys = (Unit *)((char *)workspace + slot * attention_forward_bytes(layout));
    return (Group){.b = index / layout->shape.KV,
                   .kv = index % layout->shape.KV,
                   .keys = keys,
                   .values = keys + layout->along * layout->blocks};
}

static void pack_block(const Group *group, const Arguments *args, int64_t block) {
    const Layout *layout = &args->layout;
    const AttentionShape shape = layout->shape;
    const int64_t rows = block_rows(layout, block), at = block * layout->along;
    const Storage *k = args->qkv + (group->b * shape.T + block * BLOCK) * layout->stride +
                       (shape.H + group->kv) * shape.D;
    pack_left_along(group->keys + at, k, layout->stride, rows, BLOCK, shape.D);
    pack_left_across(group->values + at, k + shape.KV * shape.D, layout->stride, rows, BLOCK,
                     shape.D);
}

/* The state of a block of queries. Weights are 2^((score - reference) * scale). */
typedef struct Softmax {
    _Alignas(64) float reference[BLOCK], sum[BLOCK], correction[BLOCK];
} Softmax;

static vfloat largest_score(float (*scores)[BLOCK], int keys) {
    vfloat top[4];
    for (int i = 0; i < 4; i++) top[i] = vload_f32(scores[i]);
    for (int j = 4; j < keys; j += 4)
        for (int i = 0; i < 4; i++) top[i] = vmax(top[i], vload_f32(scores[j + i]));
    return vmax(vmax(top[0], top[1]), vmax(top[2], top[3]));
}

static bool any_lane(vint mask) {
    int32_t any = 0;
    for (int i = 0; i < W; i++) any |= mask[i];
    return any != 0;
}

/* Takes in the scores of a part. For a query with a weight that would exceed 2^SLACK, the largest score
 * so far becomes the reference; true is returned when there is one, and then the output must be
 * multiplied by `correction`. After the first block that is rare. Each lane decides for itself: what a
 * query gives must not depend on its neighbours. */
static bool softmax_refer(Softmax *softmax, float (*scores)[BLOCK], Part part, float scale) {
    vfloat reference[BLOCK / W];
    vint grown = {0};
    for (int q = 0; q < part.queries; q += W) {
        const vfloat old = vload_f32(&softmax->reference[part.query + q]);
        const vfloat largest =
            largest_score((float(*)[BLOCK]) & scores[part.key][part.query + q], part.keys);
        const vint grows = (largest - old) * splat(scale) > splat(SLACK);
        reference[q / W] = vselect(grows, largest, old);
        grown |= grows;
    }
    if (!any_lane(grown)) return false;
    for (int q = 0; q < part.queries; q += W) {
        float *old = &softmax->reference[part.query + q], *sum = &softmax->sum[part.query + q];
        vfloat correction = weight_exp2((vload_f32(old) - reference[q / W]) * splat(scale));
        vstore_f32(&softmax->correction[part.query + q], correction);
        vstore_f32(sum, vload_f32(sum) * correction);
        vstore_f32(old, reference[q / W]);
    }
    return true;
}

/* The weights of a part as a right factor summed over keys; they are added to the sums. The reference
 * is subtracted first, so that rounding cannot make a weight too large however large the scores. */
static void softmax_weights(Softmax *softmax, Unit (*weights)[BLOCK], float (*scores)[BLOCK],
                            Part part, float scale) {
    for (int q = part.query; q < part.query + part.queries; q += W) {
        const vfloat reference = vload_f32(&softmax->reference[q]);
        vfloat sum = vload_f32(&softmax->sum[q]);
        for (int j = part.key; j < part.key + part.keys; j += UNIT) {
            vfloat weight[UNIT];
            for (int u = 0; u < UNIT; u++) {
                weight[u] = weight_exp2((vload_f32(&scores[j + u][q]) - reference) * splat(scale));
                sum += weight[u];
            }
            const vunit units = units_across(weight);
            memcpy(&weights[j / UNIT][q], &units, sizeof units);
        }
        vstore_f32(&softmax->sum[q], sum);
    }
}

/* out[D][query ..] *= factor[query ..] */
static void rescale(float (*out)[BLOCK], const float *factor, int64_t D, int query, int queries) {
    for (int64_t d = 0; d < D; d++)
        for (int q = query; q < query + queries; q += W)
            vstore_f32(&out[d][q], vload_f32(&out[d][q]) * vload_f32(&factor[q]));
}

/* out: [D][queries]; q: right factor summed over D */
static void attend(float (*out)[BLOCK], Softmax *softmax, const Unit *q, const Group *group,
                   const Layout *layout, const View *view) {
    const int64_t D = layout->shape.D, k = D / UNIT;
    const float scale = layout->shape.scale * log2_e;
    _Alignas(64) float scores[BLOCK][BLOCK];
    _Alignas(64) Unit weights[BLOCK / UNIT][BLOCK];
    for (int64_t block = view->from / BLOCK; block <= view->start / BLOCK; block++) {
        const Unit *keys = group->keys + block * layout->along;
        const Unit *values = group->values + block * layout->along;
        Part parts[2];
        const int count = view_parts(view, block, parts);
        for (int i = 0; i < count; i++) {
            const Part part = parts[i];
            product(&scores[part.key][part.query], BLOCK, (Factor){keys + part.key * k, k},
                    (Factor){q + part.query, BLOCK}, part.keys, part.queries, k, false);
            if (!view_sees_all(view, block)) mask_part(scores, view, block, part);
            if (softmax_refer(softmax, scores, part, scale))
                rescale(out, softmax->correction, D, part.query, part.queries);
            softmax_weights(softmax, weights, scores, part, scale);
            product(&out[0][part.query], BLOCK, (Factor){values + part.key / UNIT, BLOCK / UNIT},
                    (Factor){&weights[part.key / UNIT][part.query], BLOCK}, D, part.queries,
                    part.keys / UNIT, true);
        }
    }
}

/* The output and lse of query head g of the group. */
static void forward_block(const Arguments *args, const Group *group, int64_t g, int64_t block) {
    const Layout *layout = &args->layout;
    const AttentionShape shape = layout->shape;
    const int64_t D = shape.D, h = group->kv * layout->group + g, rows = block_rows(layout, block);
    const int64_t t = group->b * shape.T + block * BLOCK;
    _Alignas(64) Unit q[BLOCK * MAX_D];
    _Alignas(64) float result[MAX_D][BLOCK], reciprocal[BLOCK];
    pack_right_along(q, args->qkv + t * layout->stride + h * D, layout->stride, rows, BLOCK, D);

    Softmax softmax;
    for (int i = 0; i < BLOCK; i++) softmax.reference[i] = -FLT_MAX, softmax.sum[i] = 0;
    memset(result, 0, (size_t)D * sizeof *result);
    const View view = attention_view(
        shape, args->document_start ? args->document_start + group->b * shape.T : NULL, block);
    attend(result, &softmax, q, group, layout, &view);

    for (int i = 0; i < BLOCK; i++) reciprocal[i] = 1 / softmax.sum[i];
    write_transposed(args->out + t * shape.H * D + h * D, shape.H * D, result[0], BLOCK, rows, D,
                     reciprocal);
    for (int64_t i = 0; i < rows; i++)
        args->lse[(group->b * shape.H + h) * shape.T + block * BLOCK + i] =
            softmax.reference[i] * shape.scale + logf(softmax.sum[i]);
}

static void forward_by_groups(const Arguments *args, void *workspace, int64_t groups) {
    const int64_t blocks = args->layout.blocks;
    const int slots = (int)group_slots(groups, false);
#pragma omp parallel for schedule(dynamic) num_threads(slots)
    for (int64_t i = 0; i < groups; i++) {
        const Group group = group_at(workspace, omp_get_thread_num(), &args->layout, i);
        for (int64_t block = 0; block < blocks; block++) {
            pack_block(&group, args, block);
            for (int64_t g = 0; g < args->layout.group; g++) forward_block(args, &group, g, block);
        }
    }
}

static void forward_by_blocks(const Arguments *args, void *workspace, int64_t groups) {
    const int64_t blocks = args->layout.blocks, queries = args->layout.group * blocks;
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < groups * blocks; i++) {
            const Group group = group_at(workspace, i / blocks, &args->layout, i / blocks);
            pack_block(&group, args, i % blocks);
        }
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < groups * queries; i++) {
            const Group group = group_at(workspace, i / queries, &args->layout, i / queries);
            const int64_t block = blocks - 1 - i % blocks; /* the longest first */
            forward_block(args, &group, i % queries / blocks, block);
        }
    }
}

void KERNEL(attention_forward)(void *out, float *lse, const void *qkv,
                               const int32_t *document_start, void *workspace,
                               AttentionShape shape) {
    const Arguments args = {out, lse, qkv, document_start, attention_layout(shape)};
    const int64_t groups = shape.B * shape.KV;
    if (forward_shares_blocks(groups))
        forward_by_blocks(&args, workspace, groups);
    else
        forward_by_groups(&args, workspace, groups);
}
