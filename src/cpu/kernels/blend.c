/* A sum of two activations with learned scalars: out = a x + sign b y. */
#include "base/integer.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

/* The scalars' gradients are summed over fixed blocks, then over the blocks in their order: the same bits
 * for any number of threads. */
enum { ELEMENTS = 8192 };

typedef struct Sums {
    double dout_x, dout_y;
} Sums;

size_t KERNEL(blend_workspace)(BlendShape shape) {
    return (size_t)divide_up(shape.n, ELEMENTS) * sizeof(Sums);
}

void KERNEL(blend_forward)(void *out, const void *x, const void *y, const float *a, const float *b,
                           BlendShape shape) {
    const vfloat of_x = splat(a ? *a : 1), of_y = splat(shape.sign * (b ? *b : 1));
    const int64_t n = shape.n;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += W)
        row_store(out, i, n, of_x * row_load(x, i, n) + of_y * row_load(y, i, n));
}

typedef struct Gradients {
    Storage *dx, *dy;
    const Storage *dout, *x, *y, *dy_addend;
    vfloat of_x, of_y;
} Gradients;

static Sums backward_block(const Gradients *g, int64_t start, int64_t end) {
    vfloat along_x = {0}, along_y = {0};
    for (int64_t i = start; i < end; i += W) {
        vfloat dout = row_load(g->dout, i, end);
        vfloat addend = g->dy_addend ? row_load(g->dy_addend, i, end) : splat(0);
        along_x = dout * row_load(g->x, i, end) + along_x;
        along_y = dout * row_load(g->y, i, end) + along_y;
        row_store(g->dx, i, end, g->of_x * dout);
        row_store(g->dy, i, end, g->of_y * dout + addend);
    }
    return (Sums){(double)vsum(along_x), (double)vsum(along_y)};
}

void KERNEL(blend_backward)(void *dx, void *dy, float *da, float *db, const void *dout,
                            const void *x, const void *y, const float *a, const float *b,
                            const void *dy_addend, void *workspace, BlendShape shape) {
    const Gradients gradients = {.dx = dx,
                                 .dy = dy,
                                 .dout = dout,
                                 .x = x,
                                 .y = y,
                                 .dy_addend = dy_addend,
                                 .of_x = splat(a ? *a : 1),
                                 .of_y = splat(shape.sign * *b)};
    const int64_t blocks = divide_up(shape.n, ELEMENTS);
    Sums *partial = workspace, total = {0};
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; block++)
        partial[block] =
            backward_block(&gradients, block * ELEMENTS, smaller((block + 1) * ELEMENTS, shape.n));
    for (int64_t block = 0; block < blocks; block++) {
        total.dout_x += partial[block].dout_x;
        total.dout_y += partial[block].dout_y;
    }
    if (da) *da += (float)total.dout_x;
    *db += shape.sign * (float)total.dout_y;
}
