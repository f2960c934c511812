/* Rotary position embedding of the queries and keys of llama's models. */
#include "cuda/blocks.h"
#include "cuda/scalars.h"
#include "rotation.cuh"
#include "vectors.cuh"

/* Turns LANES pairs: from[i] and from[pairs + i] by the angles of cos_sin[i][2], i < count. */
template <class S>
DEVICE void rotate(S *to, const S *from, const float *cos_sin, int64_t pairs, int64_t count,
                   float sign) {
    float x1[LANES<S>], x2[LANES<S>], angle[2 * LANES<S>];
    load(x1, from, count);
    load(x2, from + pairs, count);
    load(angle, cos_sin, 2 * count);
    turn(x1, x2, angle, sign);
    store(to, x1, count);
    store(to + pairs, x2, count);
}

/* Rotates the first `rotated` of each token's `heads` heads of D and copies the others, a token to a
 * block. cos_sin[position][D/2][2]; branch_start[N] may be null; sign: -1 to turn back. out may be x. */
template <class S>
DEVICE void rope(S *out, const S *x, const float *cos_sin, const int32_t *branch_start,
                 const CudaScalars *scalars, int64_t T, int64_t heads, int64_t rotated, int64_t D,
                 float sign) {
    const int64_t n = blockIdx.x, pairs = D / 2, width = heads * D;
    const S *from = x + n * width;
    S *to = out + n * width;
    const int64_t since = n % T - (branch_start ? branch_start[n] : 0);
    const float *angles = cos_sin + (scalars->position + since) * D;
    const unsigned vectors = ((unsigned)pairs + LANES<S> - 1) / LANES<S>; /* of half a head */
    for (unsigned i = threadIdx.x; i < rotated * vectors; i += blockDim.x) {
        const int64_t c = i % vectors * LANES<S>, at = i / vectors * D + c;
        rotate(to + at, from + at, angles + 2 * c, pairs, pairs - c, sign);
    }
    if (out == x) return;
    for (int64_t c = rotated * D + threadIdx.x * LANES<S>; c < width; c += blockDim.x * LANES<S>)
        copy_lanes(to + c, from + c, width - c);
}

#define INSTANCE(suffix, S) \
    KERNEL(rope_##suffix, BLOCK_THREADS) \
    (S * out, const S *x, const float *cos_sin, const int32_t *branch_start, \
     const CudaScalars *scalars, int64_t T, int64_t heads, int64_t rotated, int64_t D, \
     float sign) { \
        rope(out, x, cos_sin, branch_start, scalars, T, heads, rotated, D, sign); \
    } \
    EXPORT_KERNEL(rope_##suffix)

INSTANCE(bf16, Bf16)
INSTANCE(fp32, float)
