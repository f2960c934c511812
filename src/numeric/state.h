/* Formats of optimizer states, defined in scalar C: fp32, bf16 with stochastic rounding, and 8-bit
 * block-wise dynamic quantization (Dettmers et al., arXiv 2110.02861; blocks of 256). */
#ifndef HEARTH_NUMERIC_STATE_H
#define HEARTH_NUMERIC_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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
static inline int state_octaves(float magnitude) {
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    return (int)(bits >> 24) - 51;
}

const StateCode *state_code(bool is_signed);

/* The code of the value nearest to x (already divided by its block's largest magnitude), up to the
 * rounding of the border between two values. A block of zeros is divided by 1. */
uint8_t state_encode(float x, bool is_signed);

/* Times the block's largest magnitude: all codes mean 0 when that is 0, so zeroed memory is a zero
 * state. */
float state_decode(uint8_t encoded, bool is_signed);

/* bf16 by stochastic rounding: the upper 16 bits of `random` are added to the 16 bits that
 * truncation drops. NaN and infinity are kept. */
static inline bf16 bf16_stochastic(float value, uint32_t random) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bf16_from_float(value);
    return (bf16)((bits + (random >> 16)) >> 16);
}

#endif
