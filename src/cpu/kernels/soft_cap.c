/* Logits kept within +-cap, smoothly. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

void KERNEL(soft_cap)(float *out, const float *x, int64_t n, float cap) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += W)
        row_store_f32(out, i, n, splat(cap) * vtanh(row_load_f32(x, i, n) / splat(cap)));
}
