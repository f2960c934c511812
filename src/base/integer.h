/* Arithmetic of sizes. */
#ifndef HEARTH_BASE_INTEGER_H
#define HEARTH_BASE_INTEGER_H

#include <stdint.h>

static inline int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* a / b rounded up, of positive numbers. */
static inline int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

#endif
