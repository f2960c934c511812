/* Products of the tensor cores: where every element and every scale lies, and what every code counts as. */
#include "mma.h"

#include <math.h>
#include <string.h>

#include "device.h"

enum { ROWS = 16, COLUMNS = 8, MOST_DEPTH = 64 };

typedef struct Number {
    uint32_t code;
    double value;
} Number;

enum { NUMBERS = 8, SCALES = 4 };

typedef struct Format {
    const char *kernel;
    int lowest, highest; /* compute capabilities that have it */
    int bits, depth;
    int block; /* k's that share a scale; 0: there are none */
    Number numbers[NUMBERS];
    Number scales[SCALES];
} Format;

static const Format bf16_format = {.kernel = "wrapper_mma_bf16",
                                   .lowest = 80,
                                   .highest = 999,
                                   .bits = 16,
                                   .depth = 16,
                                   .numbers = {{0x0000, 0},
                                               {0x3f80, 1},
                                               {0xbf80, -1},
                                               {0x4000, 2},
                                               {0xc000, -2},
                                               {0x3f00, 0.5},
                                               {0xbfc0, -1.5},
                                               {0x4040, 3}}};

static const Format e4m3_format = {.kernel = "wrapper_mma_e4m3",
                                   .lowest = 89,
                                   .highest = 999,
                                   .bits = 8,
                                   .depth = 32,
                                   .numbers = {{0x00, 0},
                                               {0x38, 1},
                                               {0xb8, -1},
                                               {0x40, 2},
                                               {0xc0, -2},
                                               {0x30, 0.5},
                                               {0xbc, -1.5},
                                               {0x44, 3}}};

static const Format mxfp8_format = {.kernel = "wrapper_mma_mxfp8",
                                    .lowest = 120,
                                    .highest = 121,
                                    .bits = 8,
                                    .depth = 32,
                                    .block = 32,
                                    .numbers = {{0x00, 0},
                                                {0x38, 1},
                                                {0xb8, -1},
                                                {0x40, 2},
                                                {0xc0, -2},
                                                {0x30, 0.5},
                                                {0xbc, -1.5},
                                                {0x44, 3}},
                                    .scales = {{126, 0.5}, {127, 1}, {128, 2}, {129, 4}}};

static const Format nvfp4_format = {
    .kernel = "wrapper_mma_nvfp4",
    .lowest = 120,
    .highest = 121,
    .bits = 4,
    .depth = 64,
    .block = 16,
    .numbers =
        {{0x0, 0}, {0x2, 1}, {0xa, -1}, {0x4, 2}, {0xc, -2}, {0x1, 0.5}, {0xb, -1.5}, {0x5, 3}},
    .scales = {{0x30, 0.5}, {0x38, 1}, {0x3c, 1.5}, {0x40, 2}}};

/* PTX ISA, "Matrix Fragments for mma": lane l begins at row (or column) l / 4 and at k = l % 4 * the numbers
 * in a register; what each register adds to that, the k's in halves of the depth. */
static const int a_row[4] = {0, 8, 0, 8}, a_half[4] = {0, 0, 1, 1}, b_half[2] = {0, 1};
static const int d_row[4] = {0, 0, 8, 8}, d_column[4] = {0, 1, 0, 1};

/* "Block scaling for mma", selectors 0: the lanes that hold the scales of rows and of columns. */
static const int scale_lane_a[ROWS] = {0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29};
static const int scale_lane_b[COLUMNS] = {0, 4, 8, 12, 16, 20, 24, 28};

typedef struct Matrices {
    Number a[ROWS][MOST_DEPTH], b[MOST_DEPTH][COLUMNS];
    Number scale_a[ROWS][4], scale_b[COLUMNS][4]; /* by block */
    float d[ROWS][COLUMNS];
} Matrices;

static void fill(Matrices *m, const Format *format) {
    *m = (Matrices){0};
    for (int k = 0; k < format->depth; k++) {
        for (int i = 0; i < ROWS; i++) m->a[i][k] = format->numbers[below(NUMBERS)];
        for (int j = 0; j < COLUMNS; j++) m->b[k][j] = format->numbers[below(NUMBERS)];
    }
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < ROWS; i++) m->scale_a[i][s] = format->scales[below(SCALES)];
        for (int j = 0; j < COLUMNS; j++) m->scale_b[j][s] = format->scales[below(SCALES)];
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) m->d[i][j] = (float)(below(17) - 8);
}

static double element(const Matrices *m, const Format *format, int i, int j) {
    double sum = (double)m->d[i][j];
    for (int k = 0; k < format->depth; k++) {
        int s = format->block ? k / format->block : 0;
        double scale = format->block ? m->scale_a[i][s].value * m->scale_b[j][s].value : 1;
        sum += m->a[i][k].value * m->b[k][j].value * scale;
    }
    return sum;
}

typedef struct Registers {
    uint32_t a[LANES][4], b[LANES][2], scale_a[LANES], scale_b[LANES];
    float d[LANES][4];
} Registers;

/* Scales that no lane needs are codes of NaN: an instruction that took one would show it. */
static void set_scales(Registers *r, const Matrices *m, const Format *format) {
    memset(r->scale_a, 0xff, sizeof r->scale_a);
    memset(r->scale_b, 0xff, sizeof r->scale_b);
    for (int s = 0; format->block && s < format->depth / format->block; s++) {
        uint32_t hole = ~(0xffu << 8 * s);
        for (int i = 0; i < ROWS; i++) {
            uint32_t *word = &r->scale_a[scale_lane_a[i]];
            *word = (*word & hole) | m->scale_a[i][s].code << 8 * s;
        }
        for (int j = 0; j < COLUMNS; j++) {
            uint32_t *word = &r->scale_b[scale_lane_b[j]];
            *word = (*word & hole) | m->scale_b[j][s].code << 8 * s;
        }
    }
}

static void set_registers(Registers *r, const Matrices *m, const Format *format) {
    int per = 32 / format->bits, half = format->depth / 2;
    memset(r, 0, sizeof *r);
    for (int lane = 0; lane < LANES; lane++) {
        int group = lane / 4, k = lane % 4 * per, column = lane % 4 * 2;
        for (int e = 0; e < per; e++) {
            int shift = e * format->bits;
            for (int i = 0; i < 4; i++)
                r->a[lane][i] |= m->a[group + a_row[i]][k + e + a_half[i] * half].code << shift;
            for (int i = 0; i < 2; i++)
                r->b[lane][i] |= m->b[k + e + b_half[i] * half][group].code << shift;
        }
        for (int i = 0; i < 4; i++) r->d[lane][i] = m->d[group + d_row[i]][column + d_column[i]];
    }
    set_scales(r, m, format);
}

static void multiply(Registers *r, const Format *format) {
    CUdeviceptr d = upload(r->d, sizeof r->d), a = upload(r->a, sizeof r->a);
    CUdeviceptr b = upload(r->b, sizeof r->b);
    CUdeviceptr scale_a = upload(r->scale_a, sizeof r->scale_a);
    CUdeviceptr scale_b = upload(r->scale_b, sizeof r->scale_b);
    launch_warp(format->kernel, 0, (void *[]){&d, &a, &b, &scale_a, &scale_b});
    download(r->d, d, sizeof r->d);
    release(d), release(a), release(b), release(scale_a), release(scale_b);
}

static void need_format(const Format *format) {
    int capability = device_capability();
    if (capability < format->lowest || capability > format->highest) skip();
}

/* Where every element goes, and that d is added to. */
static void check_layout(const Format *format) {
    need_format(format);
    for (int round = 0; round < 4; round++) {
        Matrices m;
        Registers r;
        fill(&m, format);
        set_registers(&r, &m, format);
        multiply(&r, format);
        for (int lane = 0; lane < LANES; lane++)
            for (int i = 0; i < 4; i++) {
                int row = lane / 4 + d_row[i], column = lane % 4 * 2 + d_column[i];
                double want = element(&m, format, row, column);
                if ((double)r.d[lane][i] != want)
                    fail_msg("%s: d[%d][%d] (lane %d, register %d) is %g, not %g", format->kernel,
                             row, column, lane, i, (double)r.d[lane][i], want);
            }
    }
}

void test_mma_bf16(void **state) {
    (void)state;
    check_layout(&bf16_format);
}

void test_mma_e4m3(void **state) {
    (void)state;
    check_layout(&e4m3_format);
}

void test_mma_mxfp8(void **state) {
    (void)state;
    check_layout(&mxfp8_format);
}

void test_mma_nvfp4(void **state) {
    (void)state;
    check_layout(&nvfp4_format);
}

/* The product of two numbers alone in their matrices, with their scales. */
static float product(const Format *format, uint32_t a, uint32_t b, uint32_t scale_a,
                     uint32_t scale_b) {
    Matrices m = {0};
    Registers r;
    m.a[0][0].code = a, m.b[0][0].code = b;
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < ROWS; i++) m.scale_a[i][s].code = scale_a;
        for (int j = 0; j < COLUMNS; j++) m.scale_b[j][s].code = scale_b;
    }
    set_registers(&r, &m, format);
    multiply(&r, format);
    return r.d[0][0];
}

static void assert_product(float got, double want, uint32_t code) {
    if (isnan(want) ? !isnan(got) : (double)got != want)
        fail_msg("code 0x%02x counts as %g, not %g", code, (double)got, want);
}

/* OCP: sign, 4 bits of exponent biased by 7, 3 of mantissa; no infinities, all ones are NaN. */
static double e4m3_value(uint32_t code) {
    int exponent = code >> 3 & 15, mantissa = code & 7;
    double size = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
    if ((code & 0x7f) == 0x7f) return NAN;
    return code & 0x80 ? -size : size;
}

static const double e2m1_values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

void test_e4m3_codes(void **state) {
    (void)state;
    need_format(&e4m3_format);
    for (uint32_t code = 0; code < 256; code++)
        assert_product(product(&e4m3_format, code, 0x38, 0, 0), e4m3_value(code), code);
}

void test_scaled_codes(void **state) {
    (void)state;
    need_format(&nvfp4_format);
    for (uint32_t code = 0; code < 16; code++) {
        double value = code & 8 ? -e2m1_values[code & 7] : e2m1_values[code & 7];
        assert_product(product(&nvfp4_format, code, 2, 0x38, 0x38), value, code);
    }
    for (uint32_t scale = 0; scale < 128; scale++) /* ue4m3 */
        assert_product(product(&nvfp4_format, 2, 2, 0x38, scale), e4m3_value(scale), scale);
    for (uint32_t scale = 1; scale < 255; scale++) /* ue8m0 */
        assert_product(product(&mxfp8_format, 0x38, 0x38, scale, 127), ldexp(1, (int)scale - 127),
                       scale);
    assert_product(product(&mxfp8_format, 0x38, 0x38, 127, 255), NAN, 255);
}
