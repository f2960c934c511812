/* The vector layer that kernels are written over: each kernel source is compiled once per instruction
 * set and storage type, and `vfloat` is W floats of the widest register there is.
 *
 * Arithmetic on vectors is C's: a + b, a * b; `a * b + c` becomes one fused instruction where there is
 * one. Storage is float or bf16; loads widen it, stores round to nearest even, bit for bit as
 * bf16_from_float(). Reductions across lanes have a fixed order. Everything here is static inline, so
 * that no instance's code can be linked into another. To add a kernel: kernels/instance.h. */
#ifndef HEARTH_CPU_VECTOR_H
#define HEARTH_CPU_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "numeric/dtype.h"

/* KERNEL(rope) is rope_avx2_bf16 in that instance. */
#define KERNEL_PASTE(name, isa, storage) name##_##isa##_##storage
#define KERNEL_EXPAND(name, isa, storage) KERNEL_PASTE(name, isa, storage)
#define KERNEL(name) KERNEL_EXPAND(name, KERNEL_ISA, KERNEL_STORAGE)

#if KERNEL_BF16
typedef bf16 Storage;
#else
typedef float Storage;
#endif

#if defined(__AVX512F__)
enum { W = 16 };
#elif defined(__AVX2__)
enum { W = 8 };
#else
enum { W = 4 };
#endif

typedef float vfloat __attribute__((vector_size(4 * W)));
typedef int32_t vint __attribute__((vector_size(4 * W)));
typedef uint32_t vuint __attribute__((vector_size(4 * W)));
typedef uint16_t vhalf __attribute__((vector_size(2 * W))); /* W bf16 */

static inline vfloat splat(float x) {
    return x - (vfloat){0};
}

static inline vint splat_int(int32_t x) {
    return x - (vint){0};
}

/* ---- minimum, maximum, choice ---- */

/* Where an argument is NaN the result is `b` on x86, so put constants first to let NaN through. */
static inline vfloat vmax(vfloat a, vfloat b) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vfloat)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__x86_64__)
    return (vfloat)_mm_max_ps((__m128)a, (__m128)b);
#elif defined(__aarch64__)
    return (vfloat)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
#else
    vint greater = a > b;
    return (vfloat)(((vint)a & greater) | ((vint)b & ~greater));
#endif
}

static inline vfloat vmin(vfloat a, vfloat b) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vfloat)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__x86_64__)
    return (vfloat)_mm_min_ps((__m128)a, (__m128)b);
#elif defined(__aarch64__)
    return (vfloat)vminq_f32((float32x4_t)a, (float32x4_t)b);
#else
    vint less = a < b;
    return (vfloat)(((vint)a & less) | ((vint)b & ~less));
#endif
}

/* a where the mask (the result of a comparison) is true, else b */
static inline vfloat vselect(vint mask, vfloat a, vfloat b) {
    return (vfloat)(((vint)a & mask) | ((vint)b & ~mask));
}

static inline vfloat vabs(vfloat x) {
    return (vfloat)((vint)x & 0x7fffffff);
}

static inline vfloat vsqrt(vfloat x) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (vfloat)_mm256_sqrt_ps((__m256)x);
#elif defined(__x86_64__)
    return (vfloat)_mm_sqrt_ps((__m128)x);
#elif defined(__aarch64__)
    return (vfloat)vsqrtq_f32((float32x4_t)x);
#else
    for (int i = 0; i < W; i++) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* ---- memory ---- */

/* By instructions: __builtin_convertvector takes halves of a register, or scalars, for these. */
static inline vuint widen(vhalf x) {
#if defined(__AVX512F__)
    return (vuint)_mm512_cvtepu16_epi32((__m256i)x);
#elif defined(__AVX2__)
    return (vuint)_mm256_cvtepu16_epi32((__m128i)x);
#elif defined(__aarch64__)
    return (vuint)vmovl_u16((uint16x4_t)x);
#else
    return __builtin_convertvector(x, vuint);
#endif
}

/* Of lanes that fit into 16 bits. */
static inline vhalf narrow(vuint x) {
#if defined(__AVX512F__)
    return (vhalf)_mm512_cvtepi32_epi16((__m512i)x);
#elif defined(__AVX2__)
    __m256i packed = _mm256_packus_epi32((__m256i)x, (__m256i)x); /* within each half */
    return (vhalf)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
#else
    return __builtin_convertvector(x, vhalf);
#endif
}

static inline vfloat bf16_widen(vhalf x) {
    return (vfloat)(widen(x) << 16);
}

/* As bf16_from_float(). The instruction for it flushes subnormal numbers, which are rare. */
static inline vhalf bf16_round(vfloat x) {
#if defined(__AVX512BF16__)
    enum { SUBNORMAL = 0x20 };
    if (__builtin_expect(_mm512_fpclass_ps_mask((__m512)x, SUBNORMAL) == 0, 1))
        return (vhalf)_mm512_cvtneps_pbh((__m512)x);
#endif
    vuint bits = (vuint)x, upper = bits >> 16;
    vuint rounded = (bits + 0x7fffu + (upper & 1u)) >> 16, quieted = upper | 0x40u;
    return narrow((vuint)vselect(x != x, (vfloat)quieted, (vfloat)rounded));
}

static inline vfloat vload_f32(const float *from) {
    vfloat x;
    memcpy(&x, from, sizeof x);
    return x;
}

static inline void vstore_f32(float *to, vfloat x) {
    memcpy(to, &x, sizeof x);
}

static inline vfloat vload_bf16(const bf16 *from) {
    vhalf x;
    memcpy(&x, from, sizeof x);
    return bf16_widen(x);
}

static inline void vstore_bf16(bf16 *to, vfloat x) {
    vhalf rounded = bf16_round(x);
    memcpy(to, &rounded, sizeof rounded);
}

/* The first `count` lanes, 0 <= count <= W, for the tail of an array: the other lanes are zero when
 * loaded, and what lies behind the array is neither read nor written. */
static inline vfloat vload_f32_part(const float *from, int64_t count) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
    vfloat x = {0};
    memcpy(&x, from, (size_t)count * sizeof *from);
    return x;
#endif
}

static inline void vstore_f32_part(float *to, vfloat x, int64_t count) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)x);
#else
    memcpy(to, &x, (size_t)count * sizeof *to);
#endif
}

static inline vfloat vload_bf16_part(const bf16 *from, int64_t count) {
#if defined(__AVX512F__)
    return bf16_widen((vhalf)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), from));
#else
    vhalf x = {0};
    memcpy(&x, from, (size_t)count * sizeof *from);
    return bf16_widen(x);
#endif
}

static inline void vstore_bf16_part(bf16 *to, vfloat x, int64_t count) {
    vhalf rounded = bf16_round(x);
#if defined(__AVX512F__)
    _mm256_mask_storeu_epi16(to, (__mmask16)((1u << count) - 1), (__m256i)rounded);
#else
    memcpy(to, &rounded, (size_t)count * sizeof *to);
#endif
}

/* W bytes as integers, and integers that fit into a byte. */
static inline vint vload_u8(const uint8_t *from) {
#if defined(__AVX512F__)
    return (vint)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
#elif defined(__AVX2__)
    return (vint)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
#else
    vint x;
    for (int i = 0; i < W; i++) x[i] = from[i];
    return x;
#endif
}

static inline void vstore_u8(uint8_t *to, vint x) {
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)x));
#elif defined(__AVX2__)
    __m128i halves = (__m128i)narrow((vuint)x);
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(halves, halves));
#else
    for (int i = 0; i < W; i++) to[i] = (uint8_t)x[i];
#endif
}

/* table[index % 16] */
static inline vfloat vpick(const float table[16], vint index) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(table));
#elif defined(__AVX2__)
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index);
    return (vfloat)_mm256_blendv_ps(low, high, (__m256)(index << 28)); /* by bit 3 */
#else
    vfloat x;
    for (int i = 0; i < W; i++) x[i] = table[index[i] & 15];
    return x;
#endif
}

/* The same for the storage type of this instance. */
static inline vfloat vload(const Storage *from) {
#if KERNEL_BF16
    return vload_bf16(from);
#else
    return vload_f32(from);
#endif
}

static inline void vstore(Storage *to, vfloat x) {
#if KERNEL_BF16
    vstore_bf16(to, x);
#else
    vstore_f32(to, x);
#endif
}

/* As vstore(), past the caches where the address allows: for what is not read soon. The barrier at
 * the end of a parallel loop orders it before all that follows. */
static inline void vstream(Storage *to, vfloat x) {
#if KERNEL_BF16 && defined(__AVX2__)
    vhalf rounded = bf16_round(x);
    if ((uintptr_t)to % sizeof rounded)
        memcpy(to, &rounded, sizeof rounded);
    else
#if defined(__AVX512F__)
        _mm256_stream_si256((__m256i *)to, (__m256i)rounded);
#else
        _mm_stream_si128((__m128i *)to, (__m128i)rounded);
#endif
#else
    vstore(to, x);
#endif
}

static inline vfloat vload_part(const Storage *from, int64_t count) {
#if KERNEL_BF16
    return vload_bf16_part(from, count);
#else
    return vload_f32_part(from, count);
#endif
}

static inline void vstore_part(Storage *to, vfloat x, int64_t count) {
#if KERNEL_BF16
    vstore_bf16_part(to, x, count);
#else
    vstore_f32_part(to, x, count);
#endif
}

static inline float storage_to_float(Storage x) {
#if KERNEL_BF16
    return bf16_to_float(x);
#else
    return x;
#endif
}

static inline Storage storage_from_float(float x) {
#if KERNEL_BF16
    return bf16_from_float(x);
#else
    return x;
#endif
}

/* ---- across lanes ---- */

typedef float Quad __attribute__((vector_size(16)));

static inline Quad quad_sum(Quad a, Quad b) {
    return a + b;
}

static inline Quad quad_max(Quad a, Quad b) {
    typedef int32_t Mask __attribute__((vector_size(16)));
    Mask greater = a > b;
    return (Quad)(((Mask)a & greater) | ((Mask)b & ~greater));
}

/* Lane i with lane i + W/2, and so on with the halves, in whole quarters of a register: compilers
 * go through memory for single lanes. */
static inline float fold(vfloat x, Quad (*combine)(Quad, Quad)) {
    Quad part[W / 4];
    memcpy(part, &x, sizeof x);
    for (int half = W / 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) part[i] = combine(part[i], part[i + half]);
    Quad pairs = combine(part[0], __builtin_shufflevector(part[0], part[0], 2, 3, 0, 1));
    return combine(pairs, __builtin_shufflevector(pairs, pairs, 1, 0, 3, 2))[0];
}

static inline float vsum(vfloat x) {
    return fold(x, quad_sum);
}

static inline float vlargest(vfloat x) {
    return fold(x, quad_max);
}

/* Lanes of a and b in turn: a0 b0 a1 b1 .. in *low, and the rest in *high. */
static inline void vzip(vuint a, vuint b, vuint *low, vuint *high) {
#if defined(__AVX512F__)
    *low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *high =
        __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif defined(__AVX2__)
    *low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    *high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    *low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    *high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

/* ---- exponentials ---- */

/* p * 2^n, where n holds an integer of at most 9 bits: two steps, so that subnormal results are right. */
static inline vfloat vscale(vfloat p, vfloat n) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    vint exponent = __builtin_convertvector(n, vint), half = exponent >> 1;
    return p * (vfloat)((vuint)(half + 127) << 23) * (vfloat)((vuint)(exponent - half + 127) << 23);
#endif
}

/* (e^r - 1) / r for |r| <= ln(2)/2: e^r is within 3e-9, the least that a polynomial of its degree
 * can reach; fitted for hearth. */
static inline vfloat vexp_slope(vfloat r) {
    vfloat p = splat(0x1.6a2352p-10f);
    p = p * r + splat(0x1.123a6cp-7f);
    p = p * r + splat(0x1.5558f4p-5f);
    p = p * r + splat(0x1.555490p-3f);
    p = p * r + splat(0x1.fffffcp-2f);
    return p * r + splat(1);
}

/* e^r * 2^n */
static inline vfloat vexp_reduced(vfloat r, vfloat n) {
    return vscale(vexp_slope(r) * r + splat(1), n);
}

/* To the nearest integer, for |x| < 2^22. */
static inline vfloat vround(vfloat x) {
    const vfloat shift = splat(0x1.8p23f);
    return x + shift - shift;
}

/* x - n ln 2: in two parts, n times the first of which is exact */
static inline vfloat vexp_rest(vfloat x, vfloat n) {
    x = x - n * splat(0x1.62e4p-1f);
    return x - n * splat(0x1.7f7d1cp-20f);
}

/* e^x within 2 units in the last place; 0 for -inf and below about -104, inf above 88.73; NaN stays. */
static inline vfloat vexp(vfloat x) {
    x = vmin(splat(90), vmax(splat(-105), x));
    vfloat n = vround(x * splat(0x1.715476p+0f));
    return vexp_reduced(vexp_rest(x, n), n);
}

/* 2^x with the same bounds: for softmax, whose scores absorb log2(e) into their scale. */
static inline vfloat vexp2(vfloat x) {
    x = vmin(splat(130), vmax(splat(-151), x));
    vfloat n = vround(x);
    return vexp_reduced((x - n) * splat(0x1.62e430p-1f), n);
}

/* 1 / (1 + e^-x): silu(x) = x * vsigmoid(x) */
static inline vfloat vsigmoid(vfloat x) {
    return splat(1) / (splat(1) + vexp(-x));
}

/* From e^2x - 1, made of 2^n (e^r - 1) and 2^n - 1: the relative error is small near zero too. */
static inline vfloat vtanh(vfloat x) {
    x = vmin(splat(20), vmax(splat(-20), splat(2) * x)); /* beyond, the result is +-1 */
    vfloat n = vround(x * splat(0x1.715476p+0f)), power = vscale(splat(1), n);
    vfloat r = vexp_rest(x, n);
    vfloat less_one = power * (vexp_slope(r) * r) + (power - splat(1));
    return less_one / (less_one + splat(2));
}

#endif
