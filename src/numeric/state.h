/* Formats of optimizer states, defined in scalar C: fp32, bf16 with stochastic rounding, and 8-bit
 * block-wise dynamic quantization (Dettmers et al., arXiv 2110.02861; blocks of 256). */
#ifndef HEARTH_NUMERIC_STATE_H
#define HEARTH_NUMERIC_STATE_H

#include <stdint.h>

#include "numeric/dtype.h"

typedef enum StateFormat { STATE_FP32, STATE_BF16, STATE_8BIT } StateFormat;

enum { STATE_BLOCK = 256 };

/* The 256 values of the dynamic code, ascending; signed for first moments, unsigned for second. The
 * largest is 1. */
const float *state_code(int is_signed);

/* The code of the value nearest to x (already divided by its block's largest magnitude); ties go
 * to the smaller code. */
uint8_t state_encode(const float *code, float x);

/* A block of count <= STATE_BLOCK values whose largest magnitude is absmax: each is stored as
 * state_encode(value / absmax), or as zero's code when absmax is 0. */
void state_quantize(uint8_t *codes, const float *values, float absmax, int64_t count,
                    int is_signed);
/* values = code * absmax: all codes mean 0 when absmax is 0, so zeroed memory is a zero state. */
void state_dequantize(float *values, const uint8_t *codes, float absmax, int64_t count,
                      int is_signed);

/* bf16 by stochastic rounding: the upper 16 bits of `random` are added to the 16 bits that
 * truncation drops. NaN and infinity are kept. */
static inline bf16 bf16_stochastic(float value, uint32_t random) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bf16_from_float(value);
    return (bf16)((bits + (random >> 16)) >> 16);
}

#endif
