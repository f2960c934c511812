/* Muon behind its matmuls: the update's norm, its variance, and the weights.
 *
 * The update X is stored [m,n] with m <= n. The variance has n entries, each a mean over m elements: down
 * the columns of what is stored, or along the rows where the matrix is square. */
#include "base/integer.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"
#include "cpu/kernels/transpose.h"

#include <math.h>

static float row_squares(const Storage *row, int64_t n) {
    vfloat sum = {0};
    for (int64_t c = 0; c < n; c += W) {
        vfloat x = row_load(row, c, n);
        sum = x * x + sum;
    }
    return vsum(sum);
}

enum { STRIPE = 64 }; /* columns that are summed together: a cache line or two of each row */

static void column_squares(float *squares, const Storage *x, int64_t first, int64_t m, int64_t n) {
    vfloat sums[STRIPE / W] = {{0}};
    const int64_t count = smaller(STRIPE, n - first);
    for (int64_t r = 0; r < m; r++) {
        const Storage *row = x + r * n + first;
        for (int64_t c = 0; c < count; c += W) {
            vfloat value = load_columns(row, c, count);
            sums[c / W] = value * value + sums[c / W];
        }
    }
    for (int64_t c = 0; c < count; c += W) row_store_f32(squares + first, c, count, sums[c / W]);
}

/* Sums of squares that the variance is made of become what their elements are multiplied by. */
static void find_scales(const MuonArguments *a, float *sums, int64_t m, int64_t n) {
    double total = 0, scaled = 0;
    for (int64_t i = 0; i < n; i++) total += (double)sums[i];
    const double norm = sqrt((double)m), first = norm / fmax(sqrt(total), 1e-6);
    for (int64_t i = 0; i < n; i++) {
        double squares = (double)sums[i] * first * first;
        a->variance[i] =
            a->shape.beta2 * a->variance[i] + (1 - a->shape.beta2) * (float)(squares / (double)m);
        sums[i] = 1 / sqrtf(fmaxf(a->variance[i], 1e-10f));
        scaled += squares * (double)sums[i] * (double)sums[i];
    }
    const double restored = first * (first * sqrt(total)) / fmax(sqrt(scaled), 1e-10);
    for (int64_t i = 0; i < n; i++) sums[i] = (float)((double)sums[i] * restored);
}

/* W elements of a row of the weights from column c on; x is their update. Decay only where the update goes
 * the same way. */
static void apply(const MuonArguments *a, int64_t row, int64_t c, vfloat x) {
    const int64_t columns = a->shape.columns;
    float *master = a->master + row * columns;
    vfloat w = row_load_f32(master, c, columns);
    vfloat decay = vselect(x * w >= splat(0), w * splat(a->rate * a->weight_decay), splat(0));
    w -= x * splat(a->rate) + decay;
    row_store_f32(master, c, columns, w);
    if (a->working && a->working != a->master)
        row_stream((Storage *)a->working + row * columns, c, columns, w);
}

static void apply_row(const MuonArguments *a, const float *scales, int64_t row) {
    const int64_t columns = a->shape.columns;
    const Storage *update = (const Storage *)a->update + row * columns;
    const bool square = a->shape.rows == columns;
    for (int64_t c = 0; c < columns; c += W) {
        vfloat scale = square ? splat(scales[row]) : row_load_f32(scales, c, columns);
        apply(a, row, c, row_load(update, c, columns) * scale);
    }
}

/* W rows by W columns of a tall matrix. */
static void apply_tile(const MuonArguments *a, const float *scales, int64_t row, int64_t column) {
    const int64_t rows = a->shape.rows, columns = a->shape.columns;
    const Storage *update = (const Storage *)a->update + column * rows;
    vunit tile[W];
#pragma GCC unroll 16
    for (int64_t i = 0; i < W; i++)
        tile[i] =
            column + i < columns ? (vunit)load_columns(update + i * rows, row, rows) : (vunit){0};
    transpose_units(tile);
#pragma GCC unroll 16
    for (int64_t i = 0; i < W; i++)
        if (row + i < rows) apply(a, row + i, column, (vfloat)tile[i] * splat(scales[row + i]));
}

void KERNEL(muon_end)(const MuonArguments *a) {
    const int64_t rows = a->shape.rows, columns = a->shape.columns;
    const int64_t m = smaller(rows, columns), n = larger(rows, columns);
    const Storage *update = a->update;
    float *scales = a->workspace;
    if (m == n) {
#pragma omp parallel for schedule(static)
        for (int64_t r = 0; r < m; r++) scales[r] = row_squares(update + r * n, n);
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t c = 0; c < n; c += STRIPE) column_squares(scales, update, c, m, n);
    }
    find_scales(a, scales, m, n);
    if (rows <= columns) {
#pragma omp parallel for schedule(static)
        for (int64_t r = 0; r < rows; r++) apply_row(a, scales, r);
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t r = 0; r < rows; r += W)
            for (int64_t c = 0; c < columns; c += W) apply_tile(a, scales, r, c);
    }
}
