/* AdamW (Loshchilov and Hutter, arXiv 1711.05101) with the bits of cpu/kernels/adamw.c: compiled without
 * fused multiply-add, and what is double there is double here. */
#include "base/random.h"
#include "clipping.cuh"
#include "cuda/blocks.h"
#include "cuda/scalars.h"
#include "numeric/power.h"
#include "reduce.cuh"
#include "step/operation.h"
#include "vectors.cuh"

/* A warp updates a block of 8-bit states at a time; a lane has FOURS times four numbers of it, the width
 * of an access to fp32 and of a block of random numbers. */
enum { FOURS = STATE_BLOCK / (32 * 4) };

/* What is updated. Moments are of the kernel's format; `working` may be null or the master itself. */
template <class S, class M> struct Weights {
    float *master;
    S *working;
    M *moment1, *moment2;
    float *gradient;
};

/* What is the same for all numbers. */
typedef struct Update {
    float gradient_scale, beta1, beta2, one_minus_beta1, one_minus_beta2;
    float decay, step_size, root_correction, epsilon;
    bool dropped;
} Update;

DEVICE Update update_of(const AdamwShape &shape, const CudaScalars &scalars, float norm) {
    const double beta1 = (double)shape.beta1, beta2 = (double)shape.beta2;
    const double rate = (double)(scalars.learning_rate * shape.rate);
    Update u;
    u.gradient_scale = clipped_scale(scalars.gradient_scale, norm, shape.clip_norm);
    u.beta1 = shape.beta1;
    u.beta2 = shape.beta2;
    u.one_minus_beta1 = (float)(1 - beta1);
    u.one_minus_beta2 = (float)(1 - beta2);
    u.decay = (float)(1 - rate * (double)shape.weight_decay);
    u.step_size = (float)(rate / (1 - integer_power(beta1, scalars.step)));
    u.root_correction = (float)(1 / sqrt(1 - integer_power(beta2, scalars.step)));
    u.epsilon = shape.epsilon;
    u.dropped = is_dropped(norm);
    return u;
}

/* Numbers at .. at + 3 of the weights, of which `count` are there; m and v are their moments. */
template <class S, class M>
DEVICE void update_four(const Weights<S, M> &weights, const Update &u, float (&m)[4], float (&v)[4],
                        int64_t at, int count) {
    float gradient[4], master[4];
    load(gradient, weights.gradient + at, count);
    load(master, weights.master + at, count);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float g = gradient[i] * u.gradient_scale;
        m[i] = m[i] * u.beta1 + g * u.one_minus_beta1;
        v[i] = v[i] * u.beta2 + g * g * u.one_minus_beta2;
        const float root = sqrtf(v[i]) * u.root_correction + u.epsilon;
        master[i] = master[i] * u.decay - m[i] * u.step_size / root;
    }
    store(weights.master + at, master, count);
    if (weights.working && (const void *)weights.working != weights.master)
        store(weights.working + at, master, count);
}

/* Where a part of a lane's numbers lies in its block. */
DEVICE int place_of(int part) {
    return 4 * (part * 32 + (int)threadIdx.x % 32);
}

/* Has `run` called for each block of states that falls to this warp, with its start and how many numbers it
 * has, and zeroes the gradient behind it. */
template <class S, class M, class Run>
DEVICE void for_each_block(const Weights<S, M> &weights, const Update &u, int64_t n, Run run) {
    const float zeros[4] = {};
    const int64_t warp = (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    for (int64_t start = warp * STATE_BLOCK; start < n;
         start += (int64_t)gridDim.x * BLOCK_WARPS * STATE_BLOCK) {
        const int count = n - start < STATE_BLOCK ? (int)(n - start) : STATE_BLOCK;
        if (!u.dropped) run(start, count);
#pragma unroll
        for (int part = 0; part < FOURS; part++)
            store(weights.gradient + start + place_of(part), zeros, count - place_of(part));
    }
}

/* Rounds as numeric/state.h's STATE_BF16; one word serves both moments, 16 bits each. */
DEVICE void round_four(float (&m)[4], float (&v)[4], const PhiloxWords &words) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        m[i] = bf16_to_float(bf16_stochastic(m[i], words.word[i]));
        v[i] = bf16_to_float(bf16_stochastic(v[i], words.word[i] << 16));
    }
}

/* fp32 and bf16 moments */
template <class S, class M>
DEVICE void adamw_plain(const Weights<S, M> &weights, const Update &u, const AdamwShape &shape,
                        const CudaScalars &scalars) {
    const uint64_t stream = random_stream(RANDOM_ROUND, shape.tensor);
    for_each_block(weights, u, shape.n, [&](int64_t start, int numbers) {
#pragma unroll
        for (int part = 0; part < FOURS; part++) {
            const int64_t at = start + place_of(part);
            const int count = numbers - place_of(part);
            float m[4], v[4];
            load(m, weights.moment1 + at, count);
            load(v, weights.moment2 + at, count);
            update_four(weights, u, m, v, at, count);
            /* 2^40 numbers before the next step's */
            const uint64_t index = ((uint64_t)scalars.step << 40) + (uint64_t)at;
            if (sizeof(M) == 2) round_four(m, v, philox(scalars.seed, stream, index / 4));
            store(weights.moment1 + at, m, count);
            store(weights.moment2 + at, v, count);
        }
    });
}

/* ---- 8-bit moments ---- */

/* Four codes in a word, the first in its lowest byte; 0 behind `count`. */
DEVICE uint32_t load_codes(const uint8_t *from, int count) {
    if (count >= 4) return reinterpret_cast<const Piece<1> *>(from)->word[0];
    uint32_t codes = 0;
#pragma unroll
    for (int i = 0; i < 3; i++)
        if (i < count) codes |= (uint32_t)from[i] << 8 * i;
    return codes;
}

DEVICE void store_codes(uint8_t *to, uint32_t codes, int count) {
    if (count >= 4) {
        reinterpret_cast<Piece<1> *>(to)->word[0] = codes;
        return;
    }
#pragma unroll
    for (int i = 0; i < 3; i++)
        if (i < count) to[i] = (uint8_t)(codes >> 8 * i);
}

/* Numbers behind the last are zero: they count for nothing in the largest magnitude. */
DEVICE void decode_four(float (&x)[4], const uint8_t *from, int count, float absmax,
                        const StateCode &code) {
    const uint32_t codes = load_codes(from, count);
#pragma unroll
    for (int i = 0; i < 4; i++)
        x[i] = i < count ? state_code_decode(&code, (uint8_t)(codes >> 8 * i)) * absmax : 0;
}

DEVICE void encode_four(uint8_t *to, const float (&x)[4], int count, float absmax,
                        const StateCode &code) {
    const float divisor = absmax > 0 ? absmax : 1;
    uint32_t codes = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        codes |= (uint32_t)state_code_encode(&code, x[i] / divisor) << 8 * i;
    store_codes(to, codes, count);
}

DEVICE float largest_magnitude(const float (&x)[FOURS][4]) {
    float largest = 0;
#pragma unroll
    for (int part = 0; part < FOURS; part++)
#pragma unroll
        for (int i = 0; i < 4; i++) largest = fmaxf(fabsf(x[part][i]), largest);
    return warp_max(largest);
}

template <class S>
DEVICE void adamw_coded(const Weights<S, uint8_t> &weights, float *absmax1, float *absmax2,
                        const Update &u, int64_t n, const StateCodes &codes) {
    for_each_block(weights, u, n, [&](int64_t start, int numbers) {
        float *const largest1 = absmax1 + start / STATE_BLOCK;
        float *const largest2 = absmax2 + start / STATE_BLOCK;
        float m[FOURS][4], v[FOURS][4];
#pragma unroll
        for (int part = 0; part < FOURS; part++) {
            const int64_t at = start + place_of(part);
            const int count = numbers - place_of(part);
            decode_four(m[part], weights.moment1 + at, count, *largest1, codes.first);
            decode_four(v[part], weights.moment2 + at, count, *largest2, codes.second);
            update_four(weights, u, m[part], v[part], at, count);
        }
        const float new1 = largest_magnitude(m), new2 = largest_magnitude(v);
#pragma unroll
        for (int part = 0; part < FOURS; part++) {
            const int64_t at = start + place_of(part);
            const int count = numbers - place_of(part);
            encode_four(weights.moment1 + at, m[part], count, new1, codes.first);
            encode_four(weights.moment2 + at, v[part], count, new2, codes.second);
        }
        __syncwarp(); /* all lanes have read the old ones */
        if (threadIdx.x % 32 == 0) *largest1 = new1, *largest2 = new2;
    });
}

/* Into shared memory, where lanes may read different entries at once. */
DEVICE void copy_code(StateCode &to, const StateCode &from) {
    for (unsigned i = threadIdx.x; i < sizeof to / 4; i += BLOCK_THREADS)
        reinterpret_cast<Piece<1> *>(&to)[i] = reinterpret_cast<const Piece<1> *>(&from)[i];
}

/* ---- kernels: adamw32, adamw16 and adamw8 by the bits of a moment ---- */

#define PLAIN_INSTANCE(bits, M, suffix, S) \
    KERNEL(adamw##bits##_##suffix, BLOCK_THREADS) \
    (float *master, S *working, M *moment1, M *moment2, float *gradient, const float *norm, \
     const CudaScalars *scalars, AdamwShape shape) { \
        __shared__ Update update; \
        if (threadIdx.x == 0) update = update_of(shape, *scalars, *norm); \
        __syncthreads(); \
        const Weights<S, M> weights = {master, working, moment1, moment2, gradient}; \
        adamw_plain(weights, update, shape, *scalars); \
    } \
    EXPORT_KERNEL(adamw##bits##_##suffix)

#define CODED_INSTANCE(suffix, S) \
    KERNEL(adamw8_##suffix, BLOCK_THREADS) \
    (float *master, S *working, uint8_t *moment1, uint8_t *moment2, float *absmax1, \
     float *absmax2, float *gradient, const float *norm, const CudaScalars *scalars, \
     AdamwShape shape, StateCodes codes) { \
        __shared__ Update update; \
        __shared__ StateCodes near; \
        if (threadIdx.x == 0) update = update_of(shape, *scalars, *norm); \
        copy_code(near.first, codes.first); \
        copy_code(near.second, codes.second); \
        __syncthreads(); \
        const Weights<S, uint8_t> weights = {master, working, moment1, moment2, gradient}; \
        adamw_coded(weights, absmax1, absmax2, update, shape.n, near); \
    } \
    EXPORT_KERNEL(adamw8_##suffix)

PLAIN_INSTANCE(32, float, bf16, Bf16)
PLAIN_INSTANCE(32, float, fp32, float)
PLAIN_INSTANCE(16, Bf16, bf16, Bf16)
PLAIN_INSTANCE(16, Bf16, fp32, float)
CODED_INSTANCE(bf16, Bf16)
CODED_INSTANCE(fp32, float)
