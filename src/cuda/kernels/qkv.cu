/* Queries, keys and values as attention takes them: the first two turned by minus the angle of their
 * position, normalised (Zhang and Sennrich, arXiv 1910.07467) and scaled, the last with their gate's share
 * of the token's value embedding.
 *
 * A block has a token, and `lanes` lanes of it, a power of two, a head: LANES pairs of numbers each, halves
 * of a head apart. */
#include "cuda/blocks.h"
#include "cuda/scalars.h"
#include "rotation.cuh"
#include "step/operation.h"
#include "vectors.cuh"

/* A lane's numbers of a head: those at c.. and the same ones of the other half. */
template <class S> struct Pairs { float first[LANES<S>], second[LANES<S>]; };

/* Of the head at `head`, where `count` pairs are left from c on. */
template <class S>
DEVICE void load_pairs(Pairs<S> &x, const S *head, int64_t c, int64_t pairs, int64_t count) {
    load(x.first, head + c, count);
    load(x.second, head + pairs + c, count);
}

template <class S>
DEVICE void store_pairs(S *head, const Pairs<S> &x, int64_t c, int64_t pairs, int64_t count) {
    store(head + c, x.first, count);
    store(head + pairs + c, x.second, count);
}

template <class S> DEVICE void multiply(Pairs<S> &x, float factor) {
#pragma unroll
    for (int i = 0; i < LANES<S>; i++) x.first[i] *= factor, x.second[i] *= factor;
}

/* x += factor y */
template <class S> DEVICE void add(Pairs<S> &x, float factor, const Pairs<S> &y) {
#pragma unroll
    for (int i = 0; i < LANES<S>; i++) {
        x.first[i] += factor * y.first[i];
        x.second[i] += factor * y.second[i];
    }
}

/* x . y over a whole head, in all its lanes. */
template <class S> DEVICE float head_dot(const Pairs<S> &x, const Pairs<S> &y, unsigned lanes) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < LANES<S>; i++) sum += x.first[i] * y.first[i] + x.second[i] * y.second[i];
    for (unsigned distance = lanes / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(FULL_WARP, sum, distance);
    return sum;
}

/* The heads of a token, and those of a thread: first, first + step, .. Warps go on together to the end, which
 * may be beyond the last head. */
typedef struct Heads {
    int64_t turned, all; /* queries and keys; with the values behind them */
    int64_t first, step, end;
} Heads;

DEVICE Heads heads_of(const QkvShape &shape, unsigned lanes) {
    const unsigned together = 32 / lanes; /* heads of a warp */
    const int64_t turned = shape.H + shape.KV, all = turned + shape.KV;
    return {turned, all, threadIdx.x / lanes, blockDim.x / lanes,
            (all + together - 1) / together * together};
}

/* What is added to the values of a token. */
template <class S> struct ValueEmbedding {
    const S *row;       /* of the token in the table, [KV,D]; null: nothing is */
    const float *gates; /* [KV] */
};

template <class S>
DEVICE ValueEmbedding<S> value_embedding(const S *values, const int32_t *tokens, const float *gates,
                                         const QkvShape &shape) {
    const int64_t n = blockIdx.x;
    if (!values) return {nullptr, nullptr};
    return {values + tokens[n] * shape.KV * shape.D, gates + n * shape.KV};
}

/* qkv[N,(H+2*KV)*D] of projected, which may be the same memory; rstd[N,H+KV]. */
template <class S>
DEVICE void qkv_forward(S *out, float *rstd, const S *projected, const float *cos_sin,
                        const int32_t *branch_start, const int32_t *tokens, const S *values,
                        const float *gates, const CudaScalars *scalars, const QkvShape &shape,
                        unsigned lanes) {
    const int64_t n = blockIdx.x, D = shape.D, pairs = D / 2;
    const int64_t c = threadIdx.x % lanes * LANES<S>;
    const int64_t position = scalars->position + n % shape.T - (branch_start ? branch_start[n] : 0);
    const ValueEmbedding<S> embedding = value_embedding(values, tokens, gates, shape);
    const Heads heads = heads_of(shape, lanes);
    float angles[2 * LANES<S>];
    load(angles, cos_sin + position * D + 2 * c, D - 2 * c);
    for (int64_t head = heads.first; head < heads.end; head += heads.step) {
        const int64_t at = (n * heads.all + head) * D, count = head < heads.all ? pairs - c : 0;
        const bool is_turned = head < heads.turned;
        Pairs<S> x;
        load_pairs(x, projected + at, c, pairs, count);
        const float squares = head_dot(x, x, lanes); /* turning leaves them */
        if (is_turned) {
            const float r = 1 / sqrtf(squares / (float)D + shape.eps);
            if (c == 0) rstd[n * heads.turned + head] = r;
            turn(x.first, x.second, angles, -1);
            multiply(x, shape.scale * r);
        } else if (embedding.row && count > 0) {
            const int64_t kv = head - heads.turned;
            Pairs<S> value;
            load_pairs(value, embedding.row + kv * D, c, pairs, count);
            add(x, embedding.gates[kv], value);
        }
        store_pairs(out + at, x, c, pairs, count);
    }
}

/* With y = scale z r, the norm's output: dz = r (scale dy - y mean(dy . y) / scale), which is turned the
 * other way than z was. dprojected may be dqkv. */
template <class S>
DEVICE void qkv_backward(S *dprojected, S *dvalues, float *dgates, const S *dqkv, const S *qkv,
                         const float *rstd, const float *cos_sin, const int32_t *tokens,
                         const S *values, const float *gates, const QkvShape &shape,
                         unsigned lanes) {
    const int64_t n = blockIdx.x, D = shape.D, pairs = D / 2;
    const int64_t c = threadIdx.x % lanes * LANES<S>;
    const ValueEmbedding<S> embedding = value_embedding(values, tokens, gates, shape);
    const Heads heads = heads_of(shape, lanes);
    float angles[2 * LANES<S>];
    load(angles, cos_sin + n % shape.T * D + 2 * c, D - 2 * c);
    for (int64_t head = heads.first; head < heads.end; head += heads.step) {
        const int64_t at = (n * heads.all + head) * D, count = head < heads.all ? pairs - c : 0;
        const int64_t kv = head - heads.turned;
        const bool is_turned = kv < 0, is_embedded = !is_turned && embedding.row;
        Pairs<S> dy, y;
        load_pairs(dy, dqkv + at, c, pairs, count);
        load_pairs(y, is_embedded ? embedding.row + kv * D : qkv + at, c, pairs,
                   is_turned || is_embedded ? count : 0);
        const float product = head_dot(dy, y, lanes);
        if (is_turned) {
            const float r = rstd[n * heads.turned + head];
            multiply(dy, r * shape.scale);
            add(dy, -r * product / ((float)D * shape.scale), y);
            turn(dy.first, dy.second, angles, 1);
        } else if (is_embedded && count > 0) {
            Pairs<S> dvalue = dy;
            multiply(dvalue, embedding.gates[kv]);
            store_pairs(dvalues + (n * shape.KV + kv) * D, dvalue, c, pairs, count);
            if (c == 0) dgates[n * shape.KV + kv] = product;
        }
        store_pairs(dprojected + at, dy, c, pairs, count);
    }
}

#define INSTANCE(suffix, S) \
    KERNEL(qkv_forward_##suffix, BLOCK_THREADS) \
    (S * out, float *rstd, const S *projected, const float *cos_sin, const int32_t *branch_start, \
     const int32_t *tokens, const S *values, const float *gates, const CudaScalars *scalars, \
     QkvShape shape, unsigned lanes) { \
        qkv_forward(out, rstd, projected, cos_sin, branch_start, tokens, values, gates, scalars, \
                    shape, lanes); \
    } \
    EXPORT_KERNEL(qkv_forward_##suffix) \
    KERNEL(qkv_backward_##suffix, BLOCK_THREADS) \
    (S * dprojected, S * dvalues, float *dgates, const S *dqkv, const S *qkv, const float *rstd, \
     const float *cos_sin, const int32_t *tokens, const S *values, const float *gates, \
     QkvShape shape, unsigned lanes) { \
        qkv_backward(dprojected, dvalues, dgates, dqkv, qkv, rstd, cos_sin, tokens, values, gates, \
                     shape, lanes); \
    } \
    EXPORT_KERNEL(qkv_backward_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
