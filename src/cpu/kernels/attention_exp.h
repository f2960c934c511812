/* 2^x for the weights of a softmax, x <= 0 or nearly so. */
#ifndef HEARTH_CPU_KERNELS_ATTENTION_EXP_H
#define HEARTH_CPU_KERNELS_ATTENTION_EXP_H

#include "cpu/vector.h"

/* 0 for -inf; no value of x is out of range, and NaN stays. With AVX-512 in 7 or 8 instructions: a
 * polynomial of least relative error over the fraction of x, exact at 0, fitted for hearth. The
 * error is below 3e-6 where results are rounded to bf16 (2e-3), and below 1.7e-7 in fp32. */
static inline vfloat weight_exp2(vfloat x) {
#if defined(__AVX512DQ__)
    const vfloat r = (vfloat)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEG_INF); /* 0 for -inf */
#if KERNEL_BF16
    vfloat p = splat(0x1.b7f730p-7f);
    p = p * r + splat(0x1.abf86ap-5f);
    p = p * r + splat(0x1.ee2450p-3f);
    p = p * r + splat(0x1.62d6c6p-1f);
#else
    vfloat p = splat(0x1.e974fcp-10f);
    p = p * r + splat(0x1.277854p-7f);
    p = p * r + splat(0x1.c91ce6p-5f);
    p = p * r + splat(0x1.ebdb56p-3f);
    p = p * r + splat(0x1.62e4bap-1f);
#endif
    p = p * r + splat(1);
    return (vfloat)_mm512_scalef_ps((__m512)p, (__m512)x); /* p * 2^floor(x) */
#else
    return vexp2(x);
#endif
}

#endif
