/* What the attention kernels share. Scores are computed in blocks of keys x queries, transposed:
 * keys are rows and queries are lanes, so that each query's maximum, sum and gradient is one
 * lane's. */
#ifndef HEARTH_CPU_KERNELS_ATTENTION_H
#define HEARTH_CPU_KERNELS_ATTENTION_H

#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/threads.h"
#include "cpu/kernels/attention_view.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/tile.h"

enum { MAX_D = 256 };

static const float log2_e = 0x1.715476p+0f;

/* Sizes derived from a shape, and where the heads lie in a row of qkv. */
typedef struct Layout {
    AttentionShape shape;
    int64_t group;         /* query heads per key head */
    int64_t blocks;        /* of a row of T tokens */
    int64_t D_padded;      /* D rounded up to whole vectors */
    int64_t stride;        /* of qkv, between tokens */
    int64_t along, across; /* units of a packed block: tile.h */
} Layout;

static inline Layout attention_layout(AttentionShape shape) {
    assert(shape.D % 2 == 0 && shape.D <= MAX_D && shape.H % shape.KV == 0);
    int64_t padded = (shape.D + W - 1) / W * W;
    return (Layout){
        .shape = shape,
        .group = shape.H / shape.KV,
        .blocks = blocks_of(shape.T),
        .D_padded = padded,
        .stride = (shape.H + 2 * shape.KV) * shape.D,
        .along = BLOCK * shape.D / UNIT,
        .across = BLOCK / UNIT * padded,
    };
}

/* What the forward packs for each (row of the batch, key head): its keys and its values. */
static inline int64_t attention_forward_bytes(const Layout *layout) {
    return 2 * layout->along * layout->blocks * (int64_t)sizeof(Unit);
}

/* Tokens in a block: the last one may be short. */
static inline int64_t block_rows(const Layout *layout, int64_t block) {
    int64_t rest = layout->shape.T - block * BLOCK;
    return rest < BLOCK ? rest : BLOCK;
}

/* What lanes q .. of the view's queries see of a key's scores; -inf elsewhere. */
static inline vfloat masked(const View *view, int q, int64_t key, vfloat scores) {
    vint lowest, highest;
    memcpy(&lowest, view->lowest + q, sizeof lowest);
    memcpy(&highest, view->highest + q, sizeof highest);
    const vint seen = (lowest <= (int32_t)key) & (highest >= (int32_t)key);
    return vselect(seen, scores, splat(-INFINITY));
}

static inline void mask_part(float (*scores)[BLOCK], const View *view, int64_t key_block,
                             Part part) {
    for (int j = part.key; j < part.key + part.keys; j++)
        for (int q = part.query; q < part.query + part.queries; q += W) {
            float *at = &scores[j][q];
            vstore_f32(at, masked(view, q, key_block * BLOCK + j, vload_f32(at)));
        }
}

/* Groups, a (row of the batch, key head) each, are best left to a thread each, so that what it packs
 * stays in its own cache. But all threads share the blocks of a group, at the cost of `shared` instead
 * of `alone`, when there are so few groups that threads would be idle. */
static inline bool share_blocks(int64_t groups, int shared, int alone) {
    const int64_t threads = thread_count(), rounds = (groups + threads - 1) / threads;
    return shared * groups < alone * rounds * threads;
}

static inline bool forward_shares_blocks(int64_t groups) {
    return share_blocks(groups, 11, 10); /* measured: what is packed lies in another's cache */
}

static inline bool backward_shares_blocks(int64_t groups) {
    return share_blocks(groups, 7, 5); /* seven products a block instead of five */
}

/* Groups that are packed at once: all, or one a thread. */
static inline int64_t group_slots(int64_t groups, bool shared) {
    const int64_t threads = thread_count();
    return shared || groups < threads ? groups : threads;
}

#endif
