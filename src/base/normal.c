/* Normal random numbers. Every weight starts with one, so a model of 110M waits for as many. Only
 * +, -, *, / and sqrt of doubles are used, and built without fused multiply-add (CMakeLists.txt), so
 * the bits are the same everywhere. */
#include <math.h>
#include <string.h>

#include "base/random.h"

enum { PAIRS = 32 }; /* at a time; four normals come from one block of words */

/* log(x) for positive, finite x, within 1e-13: x = m 2^e, log(m) = 2 atanh((m - 1) / (m + 1)). */
static inline double logarithm(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t root_half = 0x3fe6a09e00000000u; /* m is in [sqrt(1/2), sqrt(2)) */
    const uint64_t e = ((bits - root_half) & 0xfff0000000000000u);
    bits -= e;
    double m;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1) / (m + 1), t = s * s;
    double sum = 1.0 / 15;
    for (int n = 13; n > 0; n -= 2) sum = sum * t + 1.0 / n;
    return 2 * s * sum + (double)((int64_t)e >> 52) * 0x1.62e42fefa39efp-1;
}

/* Cosine and sine of a turn's part word / 2^32, within 1e-13: Taylor's series in the eighth of a turn on
 * either side of a quarter. */
static inline void circle(uint32_t word, double *cosine, double *sine) {
    const uint32_t quarter = (word + (1u << 29)) >> 30;
    const double x = (double)(int32_t)(word - (quarter << 30)) * 0x1.921fb54442d18p-30, t = x * x;
    double c = 1, s = 1;
    for (int n = 14; n > 0; n -= 2) {
        c = 1 - c * t * (1.0 / ((n - 1) * n));
        s = 1 - s * t * (1.0 / (n * (n + 1)));
    }
    s *= x;
    const double a = quarter & 1 ? s : c, b = quarter & 1 ? c : s;
    *cosine = quarter == 1 || quarter == 2 ? -a : a;
    *sine = quarter & 2 ? -b : b;
}

static void normals_of(const uint32_t words[2 * PAIRS], float out[2 * PAIRS]) {
    for (int i = 0; i < PAIRS; i++) {
        const double radius = sqrt(-2 * logarithm(((double)words[2 * i] + 1) * 0x1p-32));
        double cosine, sine;
        circle(words[2 * i + 1], &cosine, &sine);
        out[2 * i] = (float)(radius * cosine);
        out[2 * i + 1] = (float)(radius * sine);
    }
}

void random_normals(uint64_t seed, uint64_t stream, uint64_t first, size_t count, float *out) {
    for (size_t done = 0; done < count;) {
        const uint64_t start = (first + done) / (2 * PAIRS) * (2 * PAIRS);
        uint32_t words[2 * PAIRS];
        float values[2 * PAIRS];
        for (uint64_t i = 0; i < 2 * PAIRS; i += 4)
            random_block(seed, stream, (start + i) / 4, words + i);
        normals_of(words, values);
        const size_t skip = (size_t)(first + done - start);
        size_t some = 2 * PAIRS - skip;
        if (some > count - done) some = count - done;
        memcpy(out + done, values + skip, some * sizeof *out);
        done += some;
    }
}

float random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
    float value;
    random_normals(seed, stream, index, 1, &value);
    return value;
}
