/* Squared ReLU (So et al., arXiv 2109.08668): max(x, 0)^2. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

void KERNEL(relu2_forward)(void *out, const void *x, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += W) {
        vfloat positive = vmax(splat(0), row_load(x, i, n));
        row_store(out, i, n, positive * positive);
    }
}

void KERNEL(relu2_backward)(void *dx, const void *dout, const void *x, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += W) {
        vfloat positive = vmax(splat(0), row_load(x, i, n));
        row_store(dx, i, n, splat(2) * positive * row_load(dout, i, n));
    }
}
