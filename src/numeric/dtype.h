/* The number formats that buffers hold. */
#ifndef HEARTH_NUMERIC_DTYPE_H
#define HEARTH_NUMERIC_DTYPE_H

#include <stdint.h>
#include <string.h>

typedef enum Dtype {
    DTYPE_F32,
    DTYPE_BF16,
    DTYPE_I32,
    DTYPE_U8, /* codes of 8-bit optimizer states */
    DTYPES
} Dtype;

static inline int64_t dtype_size(Dtype dtype) {
    static const int64_t sizes[DTYPES] = {4, 2, 4, 1};
    return sizes[dtype];
}

static inline const char *dtype_name(Dtype dtype) {
    static const char *const names[DTYPES] = {"fp32", "bf16", "int32", "uint8"};
    return names[dtype];
}

typedef uint16_t bf16; /* the upper half of an fp32 */

static inline float bf16_to_float(bf16 value) {
    uint32_t bits = (uint32_t)value << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* Round to nearest, ties to even; NaN stays a quiet NaN. */
static inline bf16 bf16_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bf16)((bits >> 16) | 0x40u);
    return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
