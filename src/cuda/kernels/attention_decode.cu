/* Attention for generation: a block for each new token and query head, which caches the token's keys and
 * values and attends to what was cached before. The keys are shared out among groups of lanes, each with
 * a softmax of its own; a lane holds 8 columns. In the end the groups are added up in their order, so the
 * bits are the same every time.
 *
 * No block reads what another one writes: the keys of the new tokens come from qkv. */
#include "seam.h"
#include "cuda/attention_forward.h"
#include "cuda/scalars.h"

#define LOG2_E 1.44269504f

enum { COLUMNS = 8, MOST_GROUPS = DECODE_THREADS / 8 };

DEVICE void load_columns(float (&x)[COLUMNS], const float *from) {
    const float4 low = *(const float4 *)from, high = *(const float4 *)(from + 4);
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

DEVICE void load_columns(float (&x)[COLUMNS], const Bf16 *from) {
    const uint4 packed = *(const uint4 *)from;
    const uint32_t pairs[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(pairs[i] << 16);
        x[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
    }
}

DEVICE void store(float *to, float value) {
    *to = value;
}

DEVICE void store(Bf16 *to, float value) {
    *to = __float2bfloat16_rn(value);
}

/* One head's keys and values: those of positions before `position` in the caches, the others in qkv. */
template <typename Storage> struct Keys {
    const Storage *cached_keys, *cached_values, *new_keys, *new_values;
    int64_t position, cached_stride, new_stride;
};

template <typename Storage>
DEVICE void load_key(float (&key)[COLUMNS], float (&value)[COLUMNS], const Keys<Storage> &keys,
                     int64_t s, int column) {
    const bool cached = s < keys.position;
    const int64_t at = cached ? s * keys.cached_stride : (s - keys.position) * keys.new_stride;
    load_columns(key, (cached ? keys.cached_keys : keys.new_keys) + at + column);
    load_columns(value, (cached ? keys.cached_values : keys.new_values) + at + column);
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
template <typename Storage>
DEVICE Running attend(const Storage *query, const Keys<Storage> &keys, int64_t from, int64_t to,
                      int lanes, int D, float scale) {
    const int column = threadIdx.x % lanes * COLUMNS;
    const bool holds = column < D; /* lanes behind D help to add up only */
    float q[COLUMNS] = {};
    if (holds) load_columns(q, query + column);
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

/* out[T,H*D], caches [capacity,KV*D]; qkv[T,(H+2KV)*D]. A grid of T by H. */
template <typename Storage>
DEVICE void decode(Storage *out, Storage *key_cache, Storage *value_cache, const Storage *qkv,
                   const CudaScalars *scalars, Partials &partials, int H, int KV, int D,
                   int64_t window, float scale) {
    const int64_t t = blockIdx.x, h = blockIdx.y, kv = h / (H / KV);
    const int64_t position = scalars->position, to = position + t;
    const int64_t new_stride = (int64_t)(H + 2 * KV) * D, cached_stride = (int64_t)KV * D;
    const Storage *new_keys = qkv + (H + kv) * D, *new_values = new_keys + cached_stride;
    if (h % (H / KV) == 0)
        for (int d = threadIdx.x; d < D; d += DECODE_THREADS) {
            key_cache[to * cached_stride + kv * D + d] = new_keys[t * new_stride + d];
            value_cache[to * cached_stride + kv * D + d] = new_values[t * new_stride + d];
        }

    const Keys<Storage> keys = {key_cache + kv * D, value_cache + kv * D, new_keys,  new_values,
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
        store(out + (t * H + h) * D + d, combine(partials, lanes, d));
}

KERNEL(attention_decode_bf16, DECODE_THREADS)
(Bf16 *out, Bf16 *key_cache, Bf16 *value_cache, const Bf16 *qkv, const CudaScalars *scalars, int H,
 int KV, int D, int64_t window, float scale) {
    __shared__ Partials partials;
    decode(out, key_cache, value_cache, qkv, scalars, partials, H, KV, D, window, scale);
}
EXPORT_KERNEL(attention_decode_bf16)

KERNEL(attention_decode_fp32, DECODE_THREADS)
(float *out, float *key_cache, float *value_cache, const float *qkv, const CudaScalars *scalars,
 int H, int KV, int D, int64_t window, float scale) {
    __shared__ Partials partials;
    decode(out, key_cache, value_cache, qkv, scalars, partials, H, KV, D, window, scale);
}
EXPORT_KERNEL(attention_decode_fp32)
