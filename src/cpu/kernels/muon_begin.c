/* Muon up to where its matmuls begin: Nesterov momentum, rows of equal norm, a norm below 1.
 *
 * The first pass updates the momentum and leaves the update, unscaled, in the gradient's place, which
 * nobody needs any more; the second writes it scaled, transposed if it is tall, and zeroes the gradient. */
#include "base/integer.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"
#include "cpu/kernels/transpose.h"
#include "cpu/kernels/words.h"

#include <math.h>

size_t KERNEL(muon_workspace)(MuonShape shape) {
    return (size_t)larger(shape.rows, shape.columns) * sizeof(float);
}

/* `count` elements of a row; returns `squares` with those of the update added. */
static vfloat mix(const MuonArguments *a, float *gradient, float *momentum, int64_t count,
                  vfloat squares) {
    const vfloat mu = splat(a->momentum_factor), rest = splat(1 - a->momentum_factor);
    for (int64_t i = 0; i < count; i += W) {
        vfloat g = row_load_f32(gradient, i, count) * splat(a->gradient_scale);
        vfloat m = row_load_f32(momentum, i, count) * mu + g * rest;
        vfloat x = g * rest + m * mu;
        row_store_f32(momentum, i, count, m);
        row_store_f32(gradient, i, count, x);
        squares = x * x + squares;
    }
    return squares;
}

/* Elements from `start` on, all of one block of random words. The momentum is rounded after its use, as
 * AdamW's moments are. */
static vfloat mix_rounded(const MuonArguments *a, int64_t start, int64_t count, vfloat squares) {
    float m[STATE_BLOCK];
    uint32_t words[STATE_BLOCK];
    const int64_t inside = start % STATE_BLOCK;
    bf16 *momentum = (bf16 *)a->momentum + start;
    for (int64_t i = 0; i < count; i++) m[i] = bf16_to_float(momentum[i]);
    squares = mix(a, a->gradient + start, m, count, squares);
    rounding_words(words, a->seed, a->shape.tensor, a->step, start - inside);
    for (int64_t i = 0; i < count; i++) momentum[i] = bf16_stochastic(m[i], words[inside + i]);
    return squares;
}

/* Returns the row's sum of squares. */
static float mix_row(const MuonArguments *a, int64_t row) {
    const int64_t first = row * a->shape.columns, end = first + a->shape.columns;
    vfloat squares = {0};
    if (a->shape.momentum == DTYPE_F32)
        return vsum(
            mix(a, a->gradient + first, (float *)a->momentum + first, end - first, squares));
    for (int64_t start = first, next; start < end; start = next) {
        next = smaller((start / STATE_BLOCK + 1) * STATE_BLOCK, end);
        squares = mix_rounded(a, start, next - start, squares);
    }
    return vsum(squares);
}

/* Rows' sums of squares become what the rows are multiplied by. */
static void find_scales(float *rows, int64_t count) {
    double total = 0, scaled = 0;
    for (int64_t r = 0; r < count; r++) total += (double)rows[r];
    const double target = sqrt(total / (double)count);
    for (int64_t r = 0; r < count; r++) {
        double norm = sqrt((double)rows[r]), scale = target / fmax(norm, 1e-6);
        scaled += scale * norm * (scale * norm);
        rows[r] = (float)scale;
    }
    const float divisor = (float)(1.01 * sqrt(scaled) + 1e-6);
    for (int64_t r = 0; r < count; r++) rows[r] /= divisor;
}

static vfloat take(float *gradient, int64_t c, int64_t columns, float scale) {
    vfloat x = row_load_f32(gradient, c, columns) * splat(scale);
    row_store_f32(gradient, c, columns, splat(0));
    return x;
}

static void write_row(const MuonArguments *a, const float *scales, int64_t row) {
    const int64_t columns = a->shape.columns;
    Storage *update = (Storage *)a->update + row * columns;
    for (int64_t c = 0; c < columns; c += W)
        row_store(update, c, columns, take(a->gradient + row * columns, c, columns, scales[row]));
}

/* W rows by W columns, transposed. */
static void write_tile(const MuonArguments *a, const float *scales, int64_t row, int64_t column) {
    const int64_t rows = a->shape.rows, columns = a->shape.columns;
    float *gradient = a->gradient + row * columns;
    Storage *update = (Storage *)a->update + column * rows;
    vunit tile[W];
#pragma GCC unroll 16
    for (int64_t i = 0; i < W; i++)
        tile[i] = row + i < rows
                      ? (vunit)take(gradient + i * columns, column, columns, scales[row + i])
                      : (vunit){0};
    transpose_units(tile);
#pragma GCC unroll 16
    for (int64_t i = 0; i < W; i++)
        if (column + i < columns) row_store(update + i * rows, row, rows, (vfloat)tile[i]);
}

void KERNEL(muon_begin)(const MuonArguments *a) {
    const int64_t rows = a->shape.rows, columns = a->shape.columns;
    float *scales = a->workspace;
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; r++) scales[r] = mix_row(a, r);
    find_scales(scales, rows);
    if (rows <= columns) {
#pragma omp parallel for schedule(static)
        for (int64_t r = 0; r < rows; r++) write_row(a, scales, r);
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t c = 0; c < columns; c += W)
            for (int64_t r = 0; r < rows; r += W) write_tile(a, scales, r, c);
    }
}
