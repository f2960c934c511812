#include "cpu/kernels/attention_queries.h"

#include "cpu/kernels/attention_exp.h"

enum { SLACK = 8 }; /* log2 of the largest weight */

void queries_start(Queries *queries, const Storage *q, int64_t stride, int64_t count,
                   AttentionShape shape) {
    queries->count = count;
    queries->D = shape.D;
    queries->scale = shape.scale * log2_e;
    pack_right_along(queries->q, q, stride, count, BLOCK, shape.D);
    for (int i = 0; i < BLOCK; i++)
        queries->softmax.reference[i] = -FLT_MAX, queries->softmax.sum[i] = 0;
    memset(queries->out, 0, (size_t)shape.D * sizeof *queries->out);
}

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

void queries_see(Queries *queries, const Unit *keys, const Unit *values, const View *view,
                 int64_t key_block) {
    const int64_t D = queries->D, k = D / UNIT;
    Softmax *softmax = &queries->softmax;
    _Alignas(64) float scores[BLOCK][BLOCK];
    _Alignas(64) Unit weights[BLOCK / UNIT][BLOCK];
    Part parts[2];
    const int count = view_parts(view, key_block, parts);
    for (int i = 0; i < count; i++) {
        const Part part = parts[i];
        product(&scores[part.key][part.query], BLOCK, (Factor){keys + part.key * k, k},
                (Factor){queries->q + part.query, BLOCK}, part.keys, part.queries, k, false);
        if (!view_sees_all(view, key_block)) mask_part(scores, view, key_block, part);
        if (softmax_refer(softmax, scores, part, queries->scale))
            rescale(queries->out, softmax->correction, D, part.query, part.queries);
        softmax_weights(softmax, weights, scores, part, queries->scale);
        product(&queries->out[0][part.query], BLOCK,
                (Factor){values + part.key / UNIT, BLOCK / UNIT},
                (Factor){&weights[part.key / UNIT][part.query], BLOCK}, D, part.queries,
                part.keys / UNIT, true);
    }
}

void queries_write(const Queries *queries, Storage *out, int64_t stride) {
    float reciprocal[BLOCK];
    for (int i = 0; i < BLOCK; i++) reciprocal[i] = 1 / queries->softmax.sum[i];
    write_transposed(out, stride, queries->out[0], BLOCK, queries->count, queries->D, reciprocal);
}
