/* From fp32 to the storage type. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

void KERNEL(convert)(void *out, const float *in, int64_t n) {
    Storage *to = out;
    if (out == in) return; /* fp32 in place */
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += W) row_store(to, i, n, row_load_f32(in, i, n));
}
