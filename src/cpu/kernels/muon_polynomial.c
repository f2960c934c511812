/* out = a I + b A + c A A: what the update is multiplied by in a step of the polar iteration. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

void KERNEL(muon_polynomial)(void *out, const void *a1, const void *a2, PolynomialShape shape) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < shape.m; row++) {
        const Storage *linear = (const Storage *)a1 + row * shape.m,
                      *square = (const Storage *)a2 + row * shape.m;
        Storage *to = (Storage *)out + row * shape.m;
        const float diagonal = storage_to_float(linear[row]) * shape.b +
                               storage_to_float(square[row]) * shape.c + shape.a;
        for (int64_t c = 0; c < shape.m; c += W)
            row_store(to, c, shape.m,
                      row_load(linear, c, shape.m) * splat(shape.b) +
                          row_load(square, c, shape.m) * splat(shape.c));
        to[row] = storage_from_float(diagonal);
    }
}
