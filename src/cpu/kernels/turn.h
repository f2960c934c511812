/* Turning pairs by the angle of a position, for RoPE: the members of a pair are half a head apart. */
#ifndef HEARTH_CPU_KERNELS_TURN_H
#define HEARTH_CPU_KERNELS_TURN_H

#include <assert.h>

#include "cpu/kernels/row.h"

enum { MOST_PAIRS = 128 };

/* Of one position, at hand while all its heads are turned; zeros behind the last pair. */
typedef struct Angles {
    float cosine[MOST_PAIRS], sine[MOST_PAIRS];
} Angles;

/* From a row of cos_sin; inverse: the negative angles. */
static inline void angles_load(Angles *angles, const float *cos_sin, int64_t pairs, bool inverse) {
    assert(pairs <= MOST_PAIRS);
    const float sign = inverse ? -1 : 1;
    *angles = (Angles){0};
    for (int64_t i = 0; i < pairs; i++) {
        angles->cosine[i] = cos_sin[2 * i];
        angles->sine[i] = sign * cos_sin[2 * i + 1];
    }
}

/* Pairs i .. become x1*cos - x2*sin, x2*cos + x1*sin. */
static inline void turn(vfloat *x1, vfloat *x2, const Angles *angles, int64_t i) {
    const vfloat cosine = vload_f32(angles->cosine + i), sine = vload_f32(angles->sine + i);
    const vfloat first = *x1 * cosine - *x2 * sine;
    *x2 = *x2 * cosine + *x1 * sine;
    *x1 = first;
}

#endif
