/* Attention in fp32, without tensor cores: for runs that are compared, not for speed. A warp for each
 * query (and, in the backward, for each key): first its lanes are 32 keys, whose scores they find, then
 * they are columns, to which the keys' rows are added in their order. */
#include "attention.cuh"
#include "reduce.cuh"

constexpr int WARP = 32, SLICES = 4; /* of 32 columns: D is at most 128 */

/* A row's columns, lane's own of each slice. */
typedef float Columns[SLICES];

DEVICE float dot(const float *a, const float *b, int D) {
    float sum = 0;
    for (int d = 0; d < D; d += 4) {
        const float4 x = *(const float4 *)(a + d), y = *(const float4 *)(b + d);
        sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
    }
    return sum;
}

/* out += weight of lane j · row j of rows[count][stride]. weights: shared by the warp. */
DEVICE void add_rows(Columns &out, float (&weights)[WARP], float weight, const float *rows,
                     int64_t stride, int count, int D) {
    __syncwarp();
    weights[threadIdx.x] = weight;
    __syncwarp();
    for (int j = 0; j < count; j++) {
#pragma unroll
        for (int i = 0; i < SLICES; i++) {
            const int d = i * WARP + (int)threadIdx.x;
            if (d < D) out[i] += weights[j] * rows[j * stride + d];
        }
    }
}

DEVICE void store_row(float *row, const Columns &values, float scale, int D) {
#pragma unroll
    for (int i = 0; i < SLICES; i++) {
        const int d = i * WARP + (int)threadIdx.x;
        if (d < D) row[d] = values[i] * scale;
    }
}

/* out[N,H*D], lse[B,H,T]; qkv[N,(H+2KV)*D], document_start[N] or null. A grid of T by H by B. */
KERNEL(attention_forward_fp32, WARP)
(float *out, float *lse, const float *qkv, const int32_t *document_start, int T, int H, int KV,
 int D, int window, float scale) {
    __shared__ float weights[WARP];
    const int t = blockIdx.x, h = blockIdx.y, lane = threadIdx.x;
    const int64_t b = blockIdx.z, stride = (int64_t)(H + 2 * KV) * D;
    const float *row = qkv + b * T * stride, *q = row + t * stride + h * D;
    const float *k = row + (H + h / (H / KV)) * D, *v = k + KV * D;
    const View view = {document_start ? document_start + b * T : document_start, T, window};

    float largest = -INFINITY, sum = 0;
    Columns columns = {};
    for (int base = lowest_key(view, t); base <= t; base += WARP) {
        const int s = base + lane;
        const float score = s <= t ? dot(q, k + s * stride, D) * scale : -INFINITY;
        const float next = fmaxf(largest, warp_max(score));
        const float correction = expf(largest - next), weight = expf(score - next);
        largest = next;
        sum = sum * correction + weight;
        for (float &column : columns) column *= correction;
        add_rows(columns, weights, weight, v + base * stride, stride, min(WARP, t + 1 - base), D);
    }
    sum = warp_sum(sum);
    store_row(out + ((b * T + t) * H + h) * D, columns, 1 / sum, D);
    if (lane == 0) lse[(b * H + h) * T + t] = largest + logf(sum);
}
EXPORT_KERNEL(attention_forward_fp32)

/* What the backward of one query and one key is made of, in the lane that has the pair. */
typedef struct Pair {
    float weight, dscore;
} Pair;

/* dscore: the gradient of q · k. delta = dout · out. */
DEVICE Pair pair(const float *q, const float *k, const float *v, const float *dout, float lse,
                 float delta, int D, float scale) {
    const float weight = expf(dot(q, k, D) * scale - lse);
    return {weight, weight * (dot(dout, v, D) - delta) * scale};
}

/* The queries' part of dqkv[N,(H+2KV)*D]. A grid of T by H by B. */
KERNEL(attention_backward_queries_fp32, WARP)
(float *dqkv, const float *dout, const float *out, const float *lse, const float *qkv,
 const int32_t *document_start, int T, int H, int KV, int D, int window, float scale) {
    __shared__ float weights[WARP];
    const int t = blockIdx.x, h = blockIdx.y, lane = threadIdx.x;
    const int64_t b = blockIdx.z, stride = (int64_t)(H + 2 * KV) * D;
    const int64_t at = b * T * stride + t * stride + h * D, out_at = ((b * T + t) * H + h) * D;
    const float *k = qkv + b * T * stride + (H + h / (H / KV)) * D, *v = k + KV * D;
    const View view = {document_start ? document_start + b * T : document_start, T, window};
    const float delta = dot(dout + out_at, out + out_at, D);

    Columns dq = {};
    for (int base = lowest_key(view, t); base <= t; base += WARP) {
        const int s = base + lane;
        float dscore = 0;
        if (s <= t)
            dscore = pair(qkv + at, k + s * stride, v + s * stride, dout + out_at,
                          lse[(b * H + h) * T + t], delta, D, scale)
                         .dscore;
        add_rows(dq, weights, dscore, k + base * stride, stride, min(WARP, t + 1 - base), D);
    }
    store_row(dqkv + at, dq, 1, D);
}
EXPORT_KERNEL(attention_backward_queries_fp32)

/* The keys' and values' part. A grid of T by KV by B. */
KERNEL(attention_backward_keys_fp32, WARP)
(float *dqkv, const float *dout, const float *out, const float *lse, const float *qkv,
 const int32_t *document_start, int T, int H, int KV, int D, int window, float scale) {
    __shared__ float weights[WARP];
    const int s = blockIdx.x, kv = blockIdx.y, lane = threadIdx.x, group = H / KV;
    const int64_t b = blockIdx.z, stride = (int64_t)(H + 2 * KV) * D, out_stride = (int64_t)H * D;
    const int64_t at = (b * T + s) * stride + (H + kv) * D;
    const float *k = qkv + at, *v = k + KV * D;
    const View view = {document_start ? document_start + b * T : document_start, T, window};

    Columns dk = {}, dv = {};
    for (int h = kv * group; h < (kv + 1) * group; h++) {
        const float *q = qkv + b * T * stride + h * D;
        const int64_t out_at = b * T * out_stride + h * D;
        for (int base = s; base < T && lowest_key(view, base) <= s; base += WARP) {
            const int t = base + lane;
            Pair own = {0, 0};
            if (t < T && lowest_key(view, t) <= s) {
                const float *dout_row = dout + out_at + t * out_stride;
                const float delta = dot(dout_row, out + out_at + t * out_stride, D);
                own =
                    pair(q + t * stride, k, v, dout_row, lse[(b * H + h) * T + t], delta, D, scale);
            }
            const int count = min(WARP, T - base);
            add_rows(dk, weights, own.dscore, q + base * stride, stride, count, D);
            add_rows(dv, weights, own.weight, dout + out_at + base * out_stride, out_stride, count,
                     D);
        }
    }
    store_row(dqkv + at, dk, 1, D);
    store_row(dqkv + at + KV * D, dv, 1, D);
}
EXPORT_KERNEL(attention_backward_keys_fp32)
