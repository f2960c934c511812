/* Formats of optimizer states, defined in scalar C: fp32, bf16 with stochastic rounding, and 8-bit
 * block-wise dynamic quantization (Dettmers et al., arXiv 2110.02861; blocks of 256). */
#ifndef HEARTH_NUMERIC_STATE_H
#define HEARTH_NUMERIC_STATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "numeric/dtype.h"

typedef enum StateFormat { STATE_FP32, STATE_BF16, STATE_8BIT } StateFormat;

enum { STATE_BLOCK = 256 };

/* The 8-bit code, a dynamic tree. A magnitude in [0, 1] is an integer that reads like a small float,
 * n = parts + part: `parts`, a power of two, names a decade, and `part` is one of as many equal parts
 * of it, stood for by its middle. Decade 0 is the value 0, decades 1 to 7 are [1e-7, 1e-6] to [0.1, 1],
 * decade 8 is the value 1.
 *     signed, for first moments:     parts = 2^decade / 2 (none in decade 0); code = 127 +- n
 *     unsigned, for second moments:  parts = 2^decade;                        code = n - 1
 * Coding is written so that no product meets a sum: it gives the same bits everywhere, with fused
 * multiply-adds or without. */
typedef struct StateCode {
    int bias;   /* code = bias + n, or bias - n for a negative value */
    int halved; /* parts = 2^decade >> halved */
    /* By state_octaves(magnitude): the decade, one more for what is above the border. */
    float decade[16], border[16];
    /* By decade. */
    float start[16], scale[16], last[16]; /* part = min((magnitude - start) * scale, last), cut */
    float offset[16], size[16];           /* value = (1 + part / parts + offset) * size */
} StateCode;

/* One index for two octaves of magnitudes: less than a decade, so that at most one border is among
 * them. From STATE_LEAST, which is coded as zero; what is smaller counts as that. */
#define STATE_LEAST 0x1p-25f
HOST_DEVICE int state_octaves(float magnitude) {
    return (int)(float_bits(magnitude) >> 24) - 51;
}

const StateCode *state_code(bool is_signed);

/* Of the first moment, which has a sign, and of the second. */
typedef struct StateCodes {
    StateCode first, second;
} StateCodes;

/* The code of the value nearest to x (already divided by its block's largest magnitude), up to the
 * rounding of the border between two values. A block of zeros is divided by 1. */
HOST_DEVICE uint8_t state_code_encode(const StateCode *code, float x) {
    float magnitude = fabsf(x);
    if (!(magnitude > STATE_LEAST)) magnitude = STATE_LEAST;
    const int octaves = state_octaves(magnitude) & 15;
    const int decade = (int)code->decade[octaves] + (magnitude > code->border[octaves]);
    float part = (magnitude - code->start[decade]) * code->scale[decade];
    if (!(part < code->last[decade])) part = code->last[decade];
    const int n = (1 << decade >> code->halved) + (int)part;
    const int encoded = x < 0 ? code->bias - n : code->bias + n;
    return (uint8_t)(encoded < 0 ? 0 : encoded); /* no code means -1 */
}

/* Times the block's largest magnitude: all codes mean 0 when that is 0, so zeroed memory is a zero
 * state. */
HOST_DEVICE float state_code_decode(const StateCode *code, uint8_t encoded) {
    const int n = (int)encoded - code->bias;
    /* |n| as a float is 1 + part / parts, times the power of two that names its decade. */
    const uint32_t bits = float_bits(n ? fabsf((float)n) : 0.5f);
    const int decade = (int)(bits >> 23) - 127 + code->halved;
    const float one_and_fraction = float_of_bits((bits & 0x007fffff) | 0x3f800000);
    const float value = (one_and_fraction + code->offset[decade]) * code->size[decade];
    return n < 0 ? -value : value;
}

/* The same, with state_code(is_signed). */
uint8_t state_encode(float x, bool is_signed);
float state_decode(uint8_t encoded, bool is_signed);

/* bf16 by stochastic rounding: the upper 16 bits of `random` are added to the 16 bits that
 * truncation drops. NaN and infinity are kept. */
HOST_DEVICE bf16 bf16_stochastic(float value, uint32_t random) {
    const uint32_t bits = float_bits(value);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bf16_from_float(value);
    return (bf16)((bits + (random >> 16)) >> 16);
}

#endif
