/* The peak rate of dot products: as many independent sums as hide the instruction's latency. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/dot.h"

#include <time.h>

enum { SUMS = W == 16 ? 24 : 12, STEPS = 1 << 16 }; /* SUMS fit the registers */

/* What the compiler cannot see through; from zero, the sums stay finite. */
static volatile Unit zero;
static volatile float sink;

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Each sum is also a factor, so that no product can be taken out of the loop. */
static float spin(Unit start) {
    vfloat sums[SUMS];
    vunit factor = start - (vunit){0};
    for (int i = 0; i < SUMS; i++) sums[i] = (vfloat)factor;
    for (int64_t step = 0; step < STEPS; step++) {
#pragma GCC unroll 24
        for (int i = 0; i < SUMS; i++) sums[i] = dot(sums[i], factor, (vunit)sums[i]);
    }
    vfloat total = {0};
    for (int i = 0; i < SUMS; i++) total += sums[i];
    return vsum(total);
}

double KERNEL(measure_peak)(double seconds) {
    double rate = 0;
#pragma omp parallel reduction(+ : rate)
    {
        int64_t rounds = 0;
        double start = seconds_now(), elapsed;
        do {
            sink = spin(zero);
            rounds++;
        } while ((elapsed = seconds_now() - start) < seconds);
        rate += (double)rounds * STEPS * SUMS * W * UNIT * 2 / elapsed;
    }
    return rate;
}
