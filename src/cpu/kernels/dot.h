/* The step of a dot product: what a multiply-accumulate instruction takes, by instance.
 *
 * A Unit is 32 bits of an operand: one fp32 number, or, where the processor multiplies bf16 pairs, two
 * bf16 numbers that follow each other in the summed index. */
#ifndef HEARTH_CPU_KERNELS_DOT_H
#define HEARTH_CPU_KERNELS_DOT_H

#include "cpu/vector.h"

#if KERNEL_BF16 && defined(__AVX512BF16__)
#define DOT_BF16 1
#else
#define DOT_BF16 0
#endif

typedef uint32_t Unit;
typedef vuint vunit; /* W units */

#if DOT_BF16
enum { UNIT = 2 }; /* numbers in a unit */
#else
enum { UNIT = 1 };
#endif

/* sum + a * b for each lane, in fp32 */
static inline vfloat dot(vfloat sum, vunit a, vunit b) {
#if DOT_BF16
    return (vfloat)_mm512_dpbf16_ps((__m512)sum, (__m512bh)b, (__m512bh)a);
#else
    return sum + (vfloat)a * (vfloat)b;
#endif
}

#endif
