/* Muon in double precision, after nanochat's muon_step_fused(): what the kernels and the whole update are
 * held to. Matrices are [rows,columns], row-major, never transposed. */
#ifndef HEARTH_TESTS_MUON_REFERENCE_H
#define HEARTH_TESTS_MUON_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline double sum_of_squares(const double *x, int64_t n, int64_t stride) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i * stride] * x[i * stride];
    return sum;
}

/* The momentum takes the gradient in; x is what the polar iteration starts from. */
static inline void reference_begin(double *x, double *momentum, const double *gradient,
                                   int64_t rows, int64_t columns, double mu) {
    int64_t n = rows * columns;
    for (int64_t i = 0; i < n; i++) {
        momentum[i] += (1 - mu) * (gradient[i] - momentum[i]);
        x[i] = gradient[i] + mu * (momentum[i] - gradient[i]);
    }
    double target = sqrt(sum_of_squares(x, n, 1) / (double)rows);
    for (int64_t r = 0; r < rows; r++) {
        double norm = fmax(sqrt(sum_of_squares(x + r * columns, columns, 1)), 1e-6);
        for (int64_t c = 0; c < columns; c++) x[r * columns + c] *= target / norm;
    }
    double norm = sqrt(sum_of_squares(x, n, 1));
    for (int64_t i = 0; i < n; i++) x[i] /= norm * 1.01 + 1e-6;
}

/* x = a x + (b A + c A²) x with A = x xᵀ, which for a tall matrix is x (b A + c A²) with A = xᵀ x. */
static inline void reference_iterate(double *x, int64_t rows, int64_t columns, double a, double b,
                                     double c) {
    double *gram = calloc((size_t)(rows * rows), sizeof *gram),
           *factor = calloc((size_t)(rows * rows), sizeof *factor),
           *next = calloc((size_t)(rows * columns), sizeof *next);
    if (!gram || !factor || !next) abort();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++)
            for (int64_t k = 0; k < columns; k++)
                gram[i * rows + j] += x[i * columns + k] * x[j * columns + k];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++) {
            factor[i * rows + j] = b * gram[i * rows + j];
            for (int64_t k = 0; k < rows; k++)
                factor[i * rows + j] += c * gram[i * rows + k] * gram[k * rows + j];
        }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            next[i * columns + j] = a * x[i * columns + j];
            for (int64_t k = 0; k < rows; k++)
                next[i * columns + j] += factor[i * rows + k] * x[k * columns + j];
        }
    for (int64_t i = 0; i < rows * columns; i++) x[i] = next[i];
    free(gram);
    free(factor);
    free(next);
}

static inline void reference_polar(double *x, int64_t rows, int64_t columns) {
    static const double abc[5][3] = {
        {8.156554524902461, -22.48329292557795, 15.878769915207462},
        {4.042929935166739, -2.808917465908714, 0.5000178451051316},
        {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
        {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
        {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
    };
    for (int i = 0; i < 5; i++)
        reference_iterate(x, rows, columns, abc[i][0], abc[i][1], abc[i][2]);
}

typedef struct MuonRates {
    double rate, weight_decay, beta2;
} MuonRates;

/* x becomes the update that the rate is multiplied by. variance: [rows] if rows >= columns, else
 * [columns]. */
static inline void reference_end(double *master, double *variance, double *x, int64_t rows,
                                 int64_t columns, MuonRates rates) {
    bool by_row = rows >= columns;
    int64_t groups = by_row ? rows : columns, each = by_row ? columns : rows, n = rows * columns;
    double norm = fmax(sqrt(sum_of_squares(x, n, 1)), 1e-6), before = 0, after = 0;
    for (int64_t i = 0; i < n; i++) x[i] *= sqrt((double)each) / norm;
    for (int64_t g = 0; g < groups; g++) {
        double squares = by_row ? sum_of_squares(x + g * columns, columns, 1)
                                : sum_of_squares(x + g, rows, columns);
        variance[g] += (1 - rates.beta2) * (squares / (double)each - variance[g]);
        before += squares;
        after += squares / fmax(variance[g], 1e-10);
    }
    double restored = sqrt(before) / fmax(sqrt(after), 1e-10);
    for (int64_t i = 0; i < n; i++) {
        int64_t g = by_row ? i / columns : i % columns;
        x[i] *= restored / sqrt(fmax(variance[g], 1e-10));
        bool decays = x[i] * master[i] >= 0;
        master[i] -= rates.rate * x[i] + (decays ? rates.rate * rates.weight_decay * master[i] : 0);
    }
}

#endif
