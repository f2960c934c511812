/* Attention, forward: for each block of queries, blocks of keys with a running softmax (arXiv
 * 2205.14135). The output is kept transposed, [D][queries], until the block is done. */
#include "cpu/kernels/attention.h"

enum { VECTORS = BLOCK / W }; /* in a row of a block */

typedef struct Packed {
    Unit *keys;   /* per block, left factor summed over D: [BLOCK][D / UNIT] */
    Unit *values; /* per block, left factor summed over keys: [D][BLOCK / UNIT] */
} Packed;

/* The packed keys and values of one (row of the batch, key head). */
static Packed packed_group(void *workspace, const Layout *layout, int64_t index) {
    Unit *keys = (Unit *)((char *)workspace + index * attention_forward_bytes(layout));
    return (Packed){keys, keys + layout->along * layout->blocks};
}

static void pack_block(Packed packed, const Layout *layout, const Storage *qkv, int64_t index,
                       int64_t block) {
    const AttentionShape shape = layout->shape;
    int64_t b = index / shape.KV, kv = index % shape.KV, rows = block_rows(layout, block);
    const Storage *k =
        qkv + (b * shape.T + block * BLOCK) * layout->stride + (shape.H + kv) * shape.D;
    _Alignas(64) Unit across[BLOCK * MAX_D];
    pack_along(packed.keys + block * layout->along, k, layout->stride, rows, BLOCK, shape.D);
    pack_across(across, layout->D_padded, k + shape.KV * shape.D, layout->stride, rows, BLOCK,
                shape.D);
    transpose(packed.values + block * layout->along, BLOCK / UNIT, across, layout->D_padded,
              BLOCK / UNIT, shape.D);
}

/* The state of a block of queries: the largest score before scaling, the sum of the weights so far.
 */
typedef struct Softmax {
    _Alignas(64) float largest[BLOCK], sum[BLOCK], correction[BLOCK];
} Softmax;

/* Takes in a block of scores. Returns whether the output so far must be multiplied by `correction`.
 */
static bool softmax_largest(Softmax *softmax, float (*scores)[BLOCK], float scale) {
    bool changed = false;
    for (int v = 0; v < VECTORS; v++) {
        vfloat top[4];
        for (int i = 0; i < 4; i++) top[i] = vload_f32(&scores[i][v * W]);
        for (int j = 4; j < BLOCK; j += 4)
            for (int i = 0; i < 4; i++) top[i] = vmax(top[i], vload_f32(&scores[j + i][v * W]));
        vfloat old = vload_f32(&softmax->largest[v * W]);
        vfloat best = vmax(vmax(top[0], top[1]), vmax(top[2], top[3]));
        best = vmax(best, old);
        vfloat correction = vexp2((old - best) * splat(scale));
        vstore_f32(&softmax->largest[v * W], best);
        vstore_f32(&softmax->correction[v * W], correction);
        vstore_f32(&softmax->sum[v * W], vload_f32(&softmax->sum[v * W]) * correction);
        vint grown = best > old;
        for (int i = 0; i < W; i++) changed |= grown[i] != 0;
    }
    return changed;
}

/* weights = 2^((scores - largest) * scale) as a right factor summed over keys, added to the sums.
 * The maximum is subtracted first, so that rounding cannot make a weight exceed 1 however large the
 * scores. */
static void softmax_weights(Softmax *softmax, Unit (*weights)[BLOCK], float (*scores)[BLOCK],
                            float scale) {
    for (int v = 0; v < VECTORS; v++) {
        vfloat largest = vload_f32(&softmax->largest[v * W]), sum = vload_f32(&softmax->sum[v * W]);
        for (int j = 0; j < BLOCK / UNIT; j++) {
            vfloat weight[UNIT];
            for (int u = 0; u < UNIT; u++) {
                vfloat score = vload_f32(&scores[j * UNIT + u][v * W]);
                weight[u] = vexp2((score - largest) * splat(scale));
                sum += weight[u];
            }
            vunit units = units_across(weight);
            memcpy(&weights[j][v * W], &units, sizeof units);
        }
        vstore_f32(&softmax->sum[v * W], sum);
    }
}

static void rescale(float (*out)[BLOCK], const float *factor, int64_t D) {
    for (int64_t d = 0; d < D; d++)
        for (int v = 0; v < VECTORS; v++) {
            float *at = &out[d][v * W];
            vstore_f32(at, vload_f32(at) * vload_f32(factor + v * W));
        }
}

/* out: [D][queries]; q: right factor summed over D */
static void attend(float (*out)[BLOCK], Softmax *softmax, const Unit *q, Packed packed,
                   const Layout *layout, const View *view) {
    const int64_t D = layout->shape.D, last = view->start / BLOCK;
    const float scale = layout->shape.scale * log2_e;
    _Alignas(64) float scores[BLOCK][BLOCK];
    _Alignas(64) Unit weights[BLOCK / UNIT][BLOCK];
    for (int64_t block = view->from / BLOCK; block <= last; block++) {
        const Factor keys = {packed.keys + block * layout->along, D / UNIT};
        const Factor values = {packed.values + block * layout->along, BLOCK / UNIT};
        product(scores[0], BLOCK, keys, (Factor){q, BLOCK}, BLOCK, BLOCK, D / UNIT, false);
        if (!view_sees_all(view, block)) mask_block(scores, view, block);
        if (softmax_largest(softmax, scores, scale)) rescale(out, softmax->correction, D);
        softmax_weights(softmax, weights, scores, scale);
        product(out[0], BLOCK, values, (Factor){weights[0], BLOCK}, D, BLOCK, BLOCK / UNIT, true);
    }
}

static void forward_block(Storage *out, float *lse, const Storage *qkv,
                          const int32_t *document_start, Packed packed, const Layout *layout,
                          int64_t b, int64_t h, int64_t block) {
    const AttentionShape shape = layout->shape;
    const int64_t D = shape.D, start = b * shape.T + block * BLOCK,
                  rows = block_rows(layout, block);
    _Alignas(64) Unit along[BLOCK * MAX_D], q[BLOCK * MAX_D];
    _Alignas(64) float result[MAX_D][BLOCK], transposed[BLOCK][MAX_D];
    pack_along(along, qkv + start * layout->stride + h * D, layout->stride, rows, BLOCK, D);
    transpose(q, BLOCK, along, D / UNIT, BLOCK, D / UNIT);

    Softmax softmax = {.sum = {0}};
    for (int i = 0; i < BLOCK; i++) softmax.largest[i] = -FLT_MAX;
    memset(result, 0, (size_t)D * sizeof *result);
    View view = attention_view(shape, document_start ? document_start + b * shape.T : NULL, block);
    attend(result, &softmax, q, packed, layout, &view);

    _Alignas(64) float reciprocal[BLOCK];
    for (int i = 0; i < BLOCK; i++) reciprocal[i] = 1 / softmax.sum[i];
    rescale(result, reciprocal, D);
    transpose((Unit *)transposed, MAX_D, (Unit *)result, BLOCK, D, BLOCK);
    write_rows(out + start * shape.H * D + h * D, shape.H * D, transposed[0], MAX_D, rows, D, 1);
    for (int64_t i = 0; i < rows; i++)
        lse[(b * shape.H + h) * shape.T + block * BLOCK + i] =
            softmax.largest[i] * shape.scale + logf(softmax.sum[i]);
}

void KERNEL(attention_forward)(void *out, float *lse, const void *qkv,
                               const int32_t *document_start, void *workspace,
                               AttentionShape shape) {
    const Layout layout = attention_layout(shape);
    const int64_t blocks = layout.blocks, groups = shape.B * shape.KV;
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < groups * blocks; i++)
            pack_block(packed_group(workspace, &layout, i / blocks), &layout, qkv, i / blocks,
                       i % blocks);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < shape.B * shape.H * blocks; i++) {
            int64_t block = blocks - 1 - i % blocks; /* the longest first */
            int64_t b = i / blocks / shape.H, h = i / blocks % shape.H;
            Packed packed = packed_group(workspace, &layout, b * shape.KV + h / layout.group);
            forward_block(out, lse, qkv, document_start, packed, &layout, b, h, block);
        }
    }
}
