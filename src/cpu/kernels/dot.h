/* The step of a dot product: what a multiply-accumulate instruction takes, by instance.
 *
 * A Unit is 32 bits of an operand: one fp32 number or, where the processor multiplies bf16 pairs,
 * two bf16 numbers that follow each other in the summed index. */
#ifndef HEARTH_CPU_KERNELS_DOT_H
#define HEARTH_CPU_KERNELS_DOT_H

#include "cpu/vector.h"

#if KERNEL_BF16 && defined(__AVX512BF16__)
#define DOT_BF16 1
#else
#define DOT_BF16 0
#endif

/* For what must become part of its caller, which gives it constants. */
#define INLINE static inline __attribute__((always_inline))

typedef uint32_t __attribute__((may_alias)) Unit;
typedef vuint vunit; /* W units */

enum { UNIT = DOT_BF16 ? 2 : 1, ALONG = W * UNIT }; /* numbers in a unit, in a vector of units */

/* sum + a * b in each lane, in fp32 */
static inline vfloat dot(vfloat sum, vunit a, vunit b) {
#if DOT_BF16
    return (vfloat)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    return sum + (vfloat)a * (vfloat)b;
#endif
}

/* Rounds UNIT vectors, whose lanes in turn follow each other in the summed index, to W units. */
static inline vunit units_along(const vfloat x[UNIT]) {
#if DOT_BF16
    return (vunit)_mm512_cvtne2ps_pbh((__m512)x[1], (__m512)x[0]);
#else
    return (vunit)x[0];
#endif
}

/* Rounds lane i of UNIT vectors, which follow each other in the summed index, to unit i. */
static inline vunit units_across(const vfloat x[UNIT]) {
#if DOT_BF16
    const vunit lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const vunit halves = lane | (lane + W) << 16; /* unit i: numbers i and W + i */
    return (vunit)_mm512_permutexvar_epi16((__m512i)halves, (__m512i)units_along(x));
#else
    return (vunit)x[0];
#endif
}

/* W units that follow each other along a row; zeros behind `count` numbers. */
static inline vunit load_units_along(const Storage *row, int64_t count) {
#if DOT_BF16
    const __mmask32 inside = count >= ALONG ? 0xffffffffu : (1u << count) - 1;
    return (vunit)_mm512_maskz_loadu_epi16(inside, row);
#else
    return (vunit)(count >= W ? vload(row) : vload_part(row, count));
#endif
}

/* Units of W columns over UNIT rows, `stride` apart; zeros behind `count` columns and `rows` rows. */
static inline vunit load_units_down(const Storage *x, int64_t stride, int64_t count, int64_t rows) {
#if DOT_BF16
    const __mmask16 inside = (__mmask16)(count >= W ? 0xffffu : (1u << count) - 1);
    const __mmask16 second = rows > 1 ? inside : 0;
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(inside, x));
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, x + stride));
    return (vunit)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
#else
    (void)stride, (void)rows;
    return (vunit)(count >= W ? vload(x) : vload_part(x, count));
#endif
}

#endif
