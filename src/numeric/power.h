/* Powers that CPU and GPU agree on. */
#ifndef HEARTH_NUMERIC_POWER_H
#define HEARTH_NUMERIC_POWER_H

#include <stdint.h>

#include "base/host_device.h"

/* base^exponent by repeated squaring, exponent >= 0: unlike pow(), the same bits wherever double is IEEE
 * 754's and nothing is fused. */
HOST_DEVICE double integer_power(double base, int64_t exponent) {
    double power = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) power *= base;
        base *= base;
    }
    return power;
}

#endif
