/* Attention for generation: a block for each new token and query head, which caches the token's keys and
 * values (of the first branch) and attends to what was cached before. The keys are shared out among groups
 * of lanes, each with a softmax of its own; a lane holds 8 columns. In the end the groups are added up in
 * their order, so the bits are the same every time.
 *
 * No block reads what another one writes: the keys of the new tokens come from qkv. */
#include "cuda/attention_forward.h"
#include "cuda/scalars.h"
#include "exponential.cuh"
#include "vectors.cuh"

enum { COLUMNS = 8, MOST_GROUPS = DECODE_THREADS / 8 };

/* Rows begin at multiples of 16 bytes, since D is a multiple of 8. */
template <class S> DEVICE void load_aligned(float (&x)[COLUMNS], const S *from) {
    typedef Pieces<COLUMNS, S> P;
#pragma unroll
    for (int i = 0; i < P::COUNT; i++)
        unpack(x + i * P::LANES, reinterpret_cast<const typename P::Type *>(from)[i], from);
}

/* One head's keys and values: those of positions before `position` in the caches, those of the branch from
 * there on in qkv. */
template <class S> struct Keys {
    const S *cached_keys, *cached_values, *new_keys, *new_values;
    int64_t position, cached_stride, new_stride;
};

template <class S>
DEVICE void load_key(float (&key)[COLUMNS], float (&value)[COLUMNS], const Keys<S> &keys, int64_t s,
                     int column) {
    const bool cached = s < keys.position;
    const int64_t at = cached ? s * keys.cached_stride : (s - keys.position) * keys.new_stride;
    load_aligned(key, (cached ? keys.cached_keys : keys.new_keys) + at + column);
    load_aligned(value, (cached ? keys.cached_values : keys.new_values) + at + column);
}

/* The running softmax of a group of lanes, and its lane's columns of the output. */
typedef struct Running {
    float largest, sum; /* in base 2 */
    float out[COLUMNS];
} Running;

DEVICE void add_key(Running &running, float score, const float (&value)[COLUMNS]) {
    const float largest = fmaxf(running.largest, score);
    const float correction = exp2_approximate(running.largest - largest);
    const float weight = exp2_approximate(score - largest);
    running.largest = largest;
    running.sum = running.sum * correction + weight;
#pragma unroll
    for (int i = 0; i < COLUMNS; i++)
        running.out[i] = running.out[i] * correction + weight * value[i];
}

/* Keys from..to, each group its share of them. */
template <class S>
DEVICE Running attend(const S *query, const Keys<S> &keys, int64_t from, int64_t to, int lanes,
                      int D, float scale) {
    const int column = threadIdx.x % lanes * COLUMNS;
    const bool holds = column < D; /* lanes behind D help to add up only */
    float q[COLUMNS] = {};
    if (holds) load_aligned(q, query + column);
    Running running = {-INFINITY, 0, {}};
    const int64_t first = from + threadIdx.x / 32 * (32 / lanes); /* of this warp */
    for (int64_t base = first; base <= to; base += DECODE_THREADS / lanes) {
        const int64_t s = base + threadIdx.x % 32 / lanes;
        float key[COLUMNS] = {}, value[COLUMNS] = {}, score = 0;
        if (holds && s <= to) load_key(key, value, keys, s, column);
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) score += q[i] * key[i];
        for (int other = lanes / 2; other > 0; other /= 2)
            score += __shfl_xor_sync(FULL_WARP, score, other);
        if (s <= to) add_key(running, score * (scale * LOG2_E), value);
    }
    return running;
}

/* What every group found; [groups][lanes * COLUMNS] for the output. */
typedef struct Partials {
    float largest[MOST_GROUPS], sum[MOST_GROUPS], out[DECODE_THREADS * COLUMNS];
} Partials;

/* Column d of the output: the groups added up, each brought to the largest score of all. */
DEVICE float combine(const Partials &partials, int lanes, int d) {
    const int groups = DECODE_THREADS / lanes;
    float largest = -INFINITY, sum = 0, out = 0;
    for (int i = 0; i < groups; i++) largest = fmaxf(largest, partials.largest[i]);
    for (int i = 0; i < groups; i++) {
        const float weight = exp2_approximate(partials.largest[i] - largest);
        sum += weight * partials.sum[i];
        out += weight * partials.out[i * lanes * COLUMNS + d];
    }
    return out / sum;
}

/* out[T,H*D], caches [capacity,KV*D]; qkv[T,(H+2KV)*D], branch_start[T] or null. A grid of T by H. */
template <class S>
DEVICE void decode(S *out, S *key_cache, S *value_cache, const S *qkv, const int32_t *branch_start,
                   const CudaScalars *scalars, Partials &partials, int H, int KV, int D,
                   int64_t window, float scale) {
    const int64_t t = blockIdx.x, h = blockIdx.y, kv = h / (H / KV);
    const int64_t start = branch_start ? branch_start[t] : 0, since = t - start;
    const int64_t position = scalars->position, to = position + since;
    const int64_t new_stride = (int64_t)(H + 2 * KV) * D, cached_stride = (int64_t)KV * D;
    const S *new_keys = qkv + start * new_stride + (H + kv) * D;
    const S *new_values = new_keys + cached_stride;
    if (h % (H / KV) == 0 && start == 0)
        for (int d = threadIdx.x; d < D; d += DECODE_THREADS) {
            key_cache[to * cached_stride + kv * D + d] = new_keys[since * new_stride + d];
            value_cache[to * cached_stride + kv * D + d] = new_values[since * new_stride + d];
        }

    const Keys<S> keys = {key_cache + kv * D, value_cache + kv * D, new_keys,  new_values,
                          position,           cached_stride,        new_stride};
    const int lanes = D <= 64 ? 8 : 16; /* of a group */
    const Running running = attend(qkv + t * new_stride + h * D, keys,
                                   to > window ? to - window : 0, to, lanes, D, scale);
    if (threadIdx.x % lanes == 0) { /* the same in all of a group */
        partials.largest[threadIdx.x / lanes] = running.largest;
        partials.sum[threadIdx.x / lanes] = running.sum;
    }
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) partials.out[threadIdx.x * COLUMNS + i] = running.out[i];
    __syncthreads();
    for (int d = threadIdx.x; d < D; d += DECODE_THREADS)
        from_float(out[(t * H + h) * D + d], combine(partials, lanes, d));
}

KERNEL(attention_decode_bf16, DECODE_THREADS)
(Bf16 *out, Bf16 *key_cache, Bf16 *value_cache, const Bf16 *qkv, const int32_t *branch_start,
 const CudaScalars *scalars, int H, int KV, int D, int64_t window, float scale) {
    __shared__ Partials partials;
    decode(out, key_cache, value_cache, qkv, branch_start, scalars, partials, H, KV, D, window,
           scale);
}
EXPORT_KERNEL(attention_decode_bf16)

KERNEL(attention_decode_fp32, DECODE_THREADS)
(float *out, float *key_cache, float *value_cache, const float *qkv, const int32_t *branch_start,
 const CudaScalars *scalars, int H, int KV, int D, int64_t window, float scale) {
    __shared__ Partials partials;
    decode(out, key_cache, value_cache, qkv, branch_start, scalars, partials, H, KV, D, window,
           scale);
}
EXPORT_KERNEL(attention_decode_fp32)
