/* SwiGLU (Shazeer, arXiv 2002.05202): silu(gate) * up, silu(g) = g * sigmoid(g). */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

void KERNEL(swiglu_forward)(void *out, const void *gate_up, int64_t N, int64_t F) {
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < N; n++) {
        const Storage *gate = (const Storage *)gate_up + n * 2 * F, *up = gate + F;
        Storage *to = (Storage *)out + n * F;
        for (int64_t f = 0; f < F; f += W) {
            vfloat g = row_load(gate, f, F);
            row_store(to, f, F, g * vsigmoid(g) * row_load(up, f, F));
        }
    }
}

/* silu'(g) = s (1 + g (1 - s)) with s = sigmoid(g) */
void KERNEL(swiglu_backward)(void *dgate_up, const void *dout, const void *gate_up, int64_t N,
                             int64_t F) {
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < N; n++) {
        const Storage *gate = (const Storage *)gate_up + n * 2 * F, *up = gate + F;
        const Storage *above = (const Storage *)dout + n * F;
        Storage *dgate = (Storage *)dgate_up + n * 2 * F, *dup = dgate + F;
        for (int64_t f = 0; f < F; f += W) {
            vfloat g = row_load(gate, f, F), d = row_load(above, f, F), s = vsigmoid(g);
            vfloat slope = s * (splat(1) + g * (splat(1) - s));
            row_store(dgate, f, F, d * row_load(up, f, F) * slope);
            row_store(dup, f, F, d * g * s);
        }
    }
}
