#include "numeric/state.h"

#include <math.h>
#include <pthread.h>

/* What is kept of each code. Codes are at least 2^-7 apart relative to their size, so among the
 * floats that share their upper 16 bits at most one border between codes is crossed: the code is
 * that of the smallest of them, plus one beyond its border. */
typedef struct StateCode {
    float values[256];
    float borders[256];      /* the largest float that still encodes to this code */
    uint8_t smallest[65536]; /* by upper 16 bits: the code of the least float that has them */
    uint8_t zero;
} StateCode;

static StateCode codes_of[2]; /* unsigned, signed */
static pthread_once_t codes_ready = PTHREAD_ONCE_INIT;

/* The tree code: with e leading zeros a decade [0.1, 1] * 10^-e is left, cut into as many equal
 * parts as the remaining bits can name, each stood for by its middle; 0 and 1 are added. The
 * unsigned code has the sign's bit for one more bit of fraction. */
static void fill_values(float values[256], int is_signed) {
    float *next = values + (is_signed ? 127 : 0);
    *next++ = 0;
    double divisor = 1e6;
    for (int parts = is_signed ? 1 : 2; divisor >= 1; parts *= 2, divisor /= 10)
        for (int part = 0; part < parts; part++)
            *next++ = (float)((0.1 + 0.9 * (2 * part + 1) / (2 * parts)) / divisor);
    *next = 1;
    for (int i = 0; is_signed && i < 127; i++) values[126 - i] = -values[128 + i];
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void fill_code(StateCode *code, int is_signed) {
    fill_values(code->values, is_signed);
    for (int i = 0; i < 255; i++) {
        double middle = 0.5 * ((double)code->values[i] + (double)code->values[i + 1]);
        float border = (float)middle;
        code->borders[i] = (double)border > middle ? nextafterf(border, -INFINITY) : border;
    }
    code->borders[255] = INFINITY;
    for (uint32_t upper = 0; upper < 65536; upper++) {
        uint32_t least = upper << 16 | (upper & 0x8000 ? 0xffffu : 0);
        code->smallest[upper] = state_encode(code->values, float_of(least));
    }
    code->zero = state_encode(code->values, 0);
}

static void fill_codes(void) {
    fill_code(&codes_of[0], 0);
    fill_code(&codes_of[1], 1);
}

static const StateCode *code_of(int is_signed) {
    pthread_once(&codes_ready, fill_codes);
    return &codes_of[is_signed != 0];
}

const float *state_code(int is_signed) {
    return code_of(is_signed)->values;
}

uint8_t state_encode(const float *code, float x) {
    int low = 0, high = 255;
    /* Neighbours differ by at most a decade, so their sum is exact in double. */
    while (low < high) {
        int middle = (low + high) / 2;
        if (2 * (double)x > (double)code[middle] + (double)code[middle + 1])
            low = middle + 1;
        else
            high = middle;
    }
    return (uint8_t)low;
}

void state_quantize(uint8_t *codes, const float *values, float absmax, int64_t count,
                    int is_signed) {
    const StateCode *code = code_of(is_signed);
    if (absmax == 0) {
        memset(codes, code->zero, (size_t)count);
        return;
    }
    float relative[STATE_BLOCK];
#pragma omp simd
    for (int64_t i = 0; i < count; i++) relative[i] = values[i] / absmax;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &relative[i], sizeof bits);
        uint8_t smallest = code->smallest[bits >> 16];
        codes[i] = (uint8_t)(smallest + (relative[i] > code->borders[smallest]));
    }
}

void state_dequantize(float *values, const uint8_t *codes, float absmax, int64_t count,
                      int is_signed) {
    const float *code = code_of(is_signed)->values;
    for (int64_t i = 0; i < count; i++) values[i] = code[codes[i]] * absmax;
}
