/* Attention, forward: each block of queries sees the blocks of keys before it (attention_queries.h). */
#include <omp.h>

#include "cpu/kernels/attention_queries.h"

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

/* The output and lse of query head g of the group. */
static void forward_block(const Arguments *args, const Group *group, int64_t g, int64_t block) {
    const Layout *layout = &args->layout;
    const AttentionShape shape = layout->shape;
    const int64_t D = shape.D, h = group->kv * layout->group + g, rows = block_rows(layout, block);
    const int64_t t = group->b * shape.T + block * BLOCK;
    Queries queries;
    queries_start(&queries, args->qkv + t * layout->stride + h * D, layout->stride, rows, shape);
    const View view = attention_view(
        shape, args->document_start ? args->document_start + group->b * shape.T : NULL, block);
    for (int64_t seen = view.from / BLOCK; seen * BLOCK < view.to; seen++)
        queries_see(&queries, group->keys + seen * layout->along,
                    group->values + seen * layout->along, &view, seen);
    queries_write(&queries, args->out + t * shape.H * D + h * D, shape.H * D);
    for (int64_t i = 0; i < rows; i++)
        args->lse[(group->b * shape.H + h) * shape.T + block * BLOCK + i] =
            queries.softmax.reference[i] * shape.scale + logf(queries.softmax.sum[i]);
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
