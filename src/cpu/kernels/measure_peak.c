/* The peak rate of dot products: as many independent sums as hide the instruction's latency. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/dot.h"

#include <time.h>

enum { SUMS = 12, STEPS = 1 << 16 };

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The operands come through a pointer and the result is returned, so the loop cannot be folded. */
static float spin(const Unit *operand) {
    vfloat sums[SUMS] = {{0}};
    vunit a = *operand - (vunit){0}, b = a;
    for (int64_t step = 0; step < STEPS; step++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++) sums[i] = dot(sums[i], a, b);
    }
    vfloat total = {0};
    for (int i = 0; i < SUMS; i++) total += sums[i];
    return vsum(total);
}

double KERNEL(measure_peak)(double seconds) {
    double rate = 0;
#pragma omp parallel reduction(+ : rate)
    {
        volatile Unit operand = 0;
        volatile float sink;
        int64_t rounds = 0;
        double start = seconds_now(), elapsed;
        do {
            Unit value = operand;
            sink = spin(&value);
            rounds++;
        } while ((elapsed = seconds_now() - start) < seconds);
        (void)sink;
        rate += (double)rounds * STEPS * SUMS * W * UNIT * 2 / elapsed;
    }
    return rate;
}
