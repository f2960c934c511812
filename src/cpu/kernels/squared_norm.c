/* The sum of squares, for the gradient's norm. The square of an fp32 number is exact in double and the
 * order of addition is the same everywhere, so all instances give the same bits. */
#include "cpu/kernels/instance.h"

enum { BLOCKS = 256, LANES = 16 };

typedef float Numbers __attribute__((vector_size(LANES * sizeof(float))));
typedef double Sums __attribute__((vector_size(LANES * sizeof(double))));

static double sum_block(const float *x, int64_t n) {
    Sums sums = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        Numbers numbers;
        memcpy(&numbers, x + i, sizeof numbers);
        Sums wide = __builtin_convertvector(numbers, Sums);
        sums += wide * wide;
    }
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    for (; i < n; i++) total += (double)x[i] * (double)x[i];
    return total;
}

double KERNEL(squared_norm)(const float *x, int64_t n) {
    double partial[BLOCKS], total = 0;
    const int64_t size = (n + BLOCKS - 1) / BLOCKS;
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < BLOCKS; block++) {
        int64_t start = block * size < n ? block * size : n;
        partial[block] = sum_block(x + start, n - start < size ? n - start : size);
    }
    for (int block = 0; block < BLOCKS; block++) total += partial[block];
    return total;
}
