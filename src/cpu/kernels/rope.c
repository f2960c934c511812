/* Rotary position embedding (Su et al., arXiv 2104.09864), with halves of a head as the pairs. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

enum { PAIRS = 64 }; /* how many angles are kept at hand while all heads are turned by them */

typedef struct Angles {
    float cosine[PAIRS], sine[PAIRS];
} Angles;

static void angles_load(Angles *angles, const float *cos_sin, int64_t count, bool inverse) {
    const float sign = inverse ? -1 : 1;
    for (int64_t i = 0; i < count; i++) {
        angles->cosine[i] = cos_sin[2 * i];
        angles->sine[i] = sign * cos_sin[2 * i + 1];
    }
}

/* `first` and `second` are where the pairs' members begin, in the input and in the output. */
static void rotate(Storage *out_first, Storage *out_second, const Storage *first,
                   const Storage *second, const Angles *angles, int64_t count) {
    for (int64_t i = 0; i < count; i += W) {
        vfloat x1 = row_load(first, i, count), x2 = row_load(second, i, count);
        vfloat cosine = vload_f32(angles->cosine + i), sine = vload_f32(angles->sine + i);
        row_store(out_first, i, count, x1 * cosine - x2 * sine);
        row_store(out_second, i, count, x2 * cosine + x1 * sine);
    }
}

void KERNEL(rope)(void *out, const void *x, const float *cos_sin, const int32_t *branch_start,
                  int64_t N, int64_t T, int64_t heads, int64_t rotated, int64_t D, int64_t offset,
                  bool inverse) {
    const int64_t half = D / 2;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < N; n++) {
        const Storage *from = (const Storage *)x + n * heads * D;
        Storage *to = (Storage *)out + n * heads * D;
        const int64_t position = offset + n % T - (branch_start ? branch_start[n] : 0);
        const float *row = cos_sin + position * D;
        for (int64_t start = 0; start < half; start += PAIRS) {
            Angles angles = {0};
            int64_t count = half - start < PAIRS ? half - start : PAIRS;
            angles_load(&angles, row + 2 * start, count, inverse);
            for (int64_t at = start; at < rotated * D; at += D)
                rotate(to + at, to + at + half, from + at, from + at + half, &angles, count);
        }
        if (out != x)
            memcpy(to + rotated * D, from + rotated * D,
                   (size_t)((heads - rotated) * D) * sizeof *to);
    }
}
