/* Smear: to each token's activation a gated share of the token's before it is added,
 * out[n] = x[n] + lambda gates[n] x[n - 1]. */
#include "base/integer.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

/* lambda's gradient is summed over fixed blocks of rows, then over the blocks in their order: the same
 * bits for any number of threads. */
enum { ROWS = 32 };

size_t KERNEL(smear_workspace)(SmearShape shape) {
    return (size_t)divide_up(shape.N, ROWS) * sizeof(double);
}

/* out = x + share * before, or x alone where there is none before. */
static void add_share(Storage *out, const Storage *x, const Storage *before, float share,
                      int64_t C) {
    for (int64_t c = 0; c < C; c += W) {
        vfloat addend = before ? splat(share) * row_load(before, c, C) : splat(0);
        row_store(out, c, C, row_load(x, c, C) + addend);
    }
}

void KERNEL(smear_forward)(void *out, const void *x, const float *gates, const float *lambda,
                           const void *previous, SmearShape shape) {
    const int64_t C = shape.C;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < shape.N; n++) {
        const Storage *row = (const Storage *)x + n * C, *before = NULL;
        if (previous)
            before = (const Storage *)previous + n * C;
        else if (n % shape.T)
            before = row - C;
        add_share((Storage *)out + n * C, row, before, *lambda * gates[n], C);
    }
}

static float dot(const Storage *a, const Storage *b, int64_t C) {
    vfloat sum = {0};
    for (int64_t c = 0; c < C; c += W) sum = row_load(a, c, C) * row_load(b, c, C) + sum;
    return vsum(sum);
}

/* The gradient goes the other way: dx[n] = dout[n] + lambda gates[n + 1] dout[n + 1]. */
void KERNEL(smear_backward)(void *dx, float *dgates, float *dlambda, const void *dout,
                            const void *x, const float *gates, const float *lambda, void *workspace,
                            SmearShape shape) {
    const int64_t N = shape.N, T = shape.T, C = shape.C, blocks = divide_up(N, ROWS);
    double *partial = workspace;
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; block++) {
        double sum = 0;
        for (int64_t n = block * ROWS; n < smaller((block + 1) * ROWS, N); n++) {
            const Storage *above = (const Storage *)dout + n * C, *row = (const Storage *)x + n * C;
            const float along = n % T ? dot(above, row - C, C) : 0;
            const bool last = (n + 1) % T == 0;
            dgates[n] = *lambda * along;
            sum += (double)gates[n] * (double)along;
            add_share((Storage *)dx + n * C, above, last ? NULL : above + C,
                      last ? 0 : *lambda * gates[n + 1], C);
        }
        partial[block] = sum;
    }
    double total = 0;
    for (int64_t block = 0; block < blocks; block++) total += partial[block];
    *dlambda += (float)total;
}
