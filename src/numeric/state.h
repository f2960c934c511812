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

/* The code of the value nearest to x (already divided by its block's largest magnitude); ties go to the
 * smaller code. */
uint8_t state_encode(const float *code, float x);

/* bf16 by stochastic rounding: `random` (32 bits) is added below the kept mantissa before truncation.
 * NaN and infinity are kept. */
bf16 bf16_stochastic(float value, uint32_t random);

#endif
