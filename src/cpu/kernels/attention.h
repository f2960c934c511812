/* What the attention kernels share. Scores are computed in blocks of keys x queries, transposed:
 * keys are rows and queries are lanes, so that each query's maximum, sum and gradient is one
 * lane's. */
#ifndef HEARTH_CPU_KERNELS_ATTENTION_H
#define HEARTH_CPU_KERNELS_ATTENTION_H

#include <assert.h>
#include <float.h>
#include <math.h>

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

/* What lanes v*W .. of the view's queries see of a key's scores; -inf elsewhere. */
static inline vfloat masked(const View *view, int v, int64_t key, vfloat scores) {
    vint lane, lowest;
    for (int i = 0; i < W; i++) lane[i] = i;
    memcpy(&lowest, view->lowest + v * W, sizeof lowest);
    vint query = lane + (int32_t)(view->start + v * W);
    return vselect((lowest <= (int32_t)key) & (query >= (int32_t)key), scores, splat(-INFINITY));
}

static inline void mask_block(float (*scores)[BLOCK], const View *view, int64_t key_block) {
    for (int j = 0; j < BLOCK; j++)
        for (int v = 0; v < BLOCK / W; v++) {
            float *at = &scores[j][v * W];
            vstore_f32(at, masked(view, v, key_block * BLOCK + j, vload_f32(at)));
        }
}

#endif
