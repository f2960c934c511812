/* The number formats that buffers hold. */
#ifndef HEARTH_NUMERIC_DTYPE_H
#define HEARTH_NUMERIC_DTYPE_H

#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

typedef enum Dtype {
    DTYPE_F32,
    DTYPE_BF16,
    DTYPE_I32,
    DTYPE_U8,  /* codes of 8-bit optimizer states */
    DTYPE_F64, /* sums over a step */
    DTYPES
} Dtype;

static inline int64_t dtype_size(Dtype dtype) {
    static const int64_t sizes[DTYPES] = {4, 2, 4, 1, 8};
    return sizes[dtype];
}

static inline const char *dtype_name(Dtype dtype) {
    static const char *const names[DTYPES] = {"fp32", "bf16", "int32", "uint8", "fp64"};
    return names[dtype];
}

typedef uint16_t bf16; /* the upper half of an fp32 */

HOST_DEVICE uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

HOST_DEVICE float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

HOST_DEVICE float bf16_to_float(bf16 value) {
    return float_of_bits((uint32_t)value << 16);
}

/* Round to nearest, ties to even; NaN stays a quiet NaN. */
HOST_DEVICE bf16 bf16_from_float(float value) {
    const uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bf16)((bits >> 16) | 0x40u);
    return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
