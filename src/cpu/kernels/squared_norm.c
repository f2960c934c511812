/* The sum of squares, for the gradient's norm. The square of an fp32 number is exact in double
 * and the order of addition is the same everywhere, so all instances give the same bits. */
#include "cpu/kernels/instance.h"

/* LANES running sums, in as many registers as that takes */
enum { BLOCKS = 256, LANES = 16, WIDTH = W / 2, REGISTERS = LANES / WIDTH };

typedef float Singles __attribute__((vector_size(WIDTH * sizeof(float))));
typedef double Doubles __attribute__((vector_size(WIDTH * sizeof(double))));

static double sum_block(const float *x, int64_t n) {
    Doubles sums[REGISTERS] = {{0}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
#pragma GCC unroll 8
        for (int part = 0; part < REGISTERS; part++) {
            Singles singles;
            memcpy(&singles, x + i + part * WIDTH, sizeof singles);
            Doubles wide = __builtin_convertvector(singles, Doubles);
            sums[part] += wide * wide;
        }
    }
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) total += sums[lane / WIDTH][lane % WIDTH];
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
