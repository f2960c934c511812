/* RMSNorm (Zhang and Sennrich, arXiv 1910.07467): y = w x r, r = 1/sqrt(mean(x^2) + eps). */
#include "base/integer.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

#include <math.h>

/* The weight's gradient is summed over fixed blocks of rows, each into a row of the workspace,
 * then over the blocks in their order: the same bits for any number of threads. */
enum { ROWS = 32 };

size_t KERNEL(rmsnorm_workspace)(int64_t N, int64_t C) {
    return (size_t)divide_up(N, ROWS) * (size_t)C * sizeof(float);
}

static inline vfloat weight_load(const Storage *weight, int64_t c, int64_t C) {
    return weight ? load_columns(weight, c, C) : splat(1);
}

void KERNEL(rmsnorm_forward)(void *out, float *rstd, const void *x, const void *weight, int64_t N,
                             int64_t C, float eps) {
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < N; n++) {
        const Storage *from = (const Storage *)x + n * C;
        Storage *to = (Storage *)out + n * C;
        vfloat squares = {0};
        for (int64_t c = 0; c < C; c += W) {
            vfloat value = row_load(from, c, C);
            squares = value * value + squares;
        }
        rstd[n] = 1 / sqrtf(vsum(squares) / (float)C + eps);
        for (int64_t c = 0; c < C; c += W)
            row_store(to, c, C, row_load(from, c, C) * splat(rstd[n]) * weight_load(weight, c, C));
    }
}

/* With s = sum(dy w x): dx = r (dy w - x r^2 s / C), and row n adds dy x r to dw. */
static void backward_row(Storage *dx, float *dweight, const Storage *dout, const Storage *dresidual,
                         const Storage *x, float rstd, const Storage *weight, int64_t C) {
    vfloat products = {0};
    for (int64_t c = 0; c < C; c += W) {
        vfloat dout_x = row_load(dout, c, C) * row_load(x, c, C);
        products = dout_x * weight_load(weight, c, C) + products;
        if (dweight)
            row_store_f32(dweight, c, C, dout_x * splat(rstd) + row_load_f32(dweight, c, C));
    }
    vfloat along_x = splat(rstd * rstd * vsum(products) / (float)C);
    for (int64_t c = 0; c < C; c += W) {
        vfloat above = dresidual ? row_load(dresidual, c, C) : splat(0);
        vfloat scaled =
            row_load(dout, c, C) * weight_load(weight, c, C) - along_x * row_load(x, c, C);
        row_store(dx, c, C, scaled * splat(rstd) + above);
    }
}

void KERNEL(rmsnorm_backward)(void *dx, float *dweight, const void *dout, const void *dresidual,
                              const void *x, const float *rstd, const void *weight, void *workspace,
                              int64_t N, int64_t C) {
    float *partial = workspace;
    const int64_t blocks = divide_up(N, ROWS);
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; block++) {
        float *sums = dweight ? partial + block * C : NULL;
        if (sums) memset(sums, 0, (size_t)C * sizeof *sums);
        for (int64_t n = block * ROWS; n < N && n < (block + 1) * ROWS; n++)
            backward_row((Storage *)dx + n * C, sums, (const Storage *)dout + n * C,
                         dresidual ? (const Storage *)dresidual + n * C : NULL,
                         (const Storage *)x + n * C, rstd[n], weight, C);
    }
    if (!dweight) return;
#pragma omp parallel for schedule(static)
    for (int64_t c = 0; c < C; c += W) {
        vfloat sum = {0};
        for (int64_t block = 0; block < blocks; block++)
            sum += row_load_f32(partial + block * C, c, C);
        row_store_f32(dweight, c, C, row_load_f32(dweight, c, C) + sum);
    }
}
