/* Rotary position embedding (Su et al., arXiv 2104.09864), with halves of a head as the pairs. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/turn.h"

static void rotate(Storage *out, const Storage *x, const Angles *angles, int64_t half) {
    for (int64_t i = 0; i < half; i += W) {
        vfloat x1 = row_load(x, i, half), x2 = row_load(x + half, i, half);
        turn(&x1, &x2, angles, i);
        row_store(out, i, half, x1);
        row_store(out + half, i, half, x2);
    }
}

void KERNEL(rope)(void *out, const void *x, const float *cos_sin, const int32_t *branch_start,
                  int64_t N, int64_t T, int64_t heads, int64_t rotated, int64_t D, int64_t offset,
                  bool inverse) {
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < N; n++) {
        const Storage *from = (const Storage *)x + n * heads * D;
        Storage *to = (Storage *)out + n * heads * D;
        const int64_t position = offset + n % T - (branch_start ? branch_start[n] : 0);
        Angles angles;
        angles_load(&angles, cos_sin + position * D, D / 2, inverse);
        for (int64_t h = 0; h < rotated; h++) rotate(to + h * D, from + h * D, &angles, D / 2);
        if (out != x)
            memcpy(to + rotated * D, from + rotated * D,
                   (size_t)((heads - rotated) * D) * sizeof *to);
    }
}
