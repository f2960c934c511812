/* The functions of cuda/kernels/seam.h against the PTX ISA, on whatever libcuda.so.1 is found: the test GPU in
 * its modes, with the PTX of each chip, or a real one. Matrices hold numbers that every format and every
 * accumulator keeps exactly, so that results are equal however the hardware rounds. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/random.h"
#include "cuda/driver.h"
#include "support.h"

enum { LANES = 32, ROWS = 16, COLUMNS = 8, MOST_DEPTH = 64 };

static CudaDriver cuda;
static CUmodule module;
static CUstream stream;
static int capability; /* 120 for 12.0 */
static const char *image_path = WRAPPERS_IMAGE;

static int below(int bound) {
    static uint64_t draws;
    return (int)random_below(11, 0, draws++, (uint64_t)bound);
}

/* ---- the GPU ---- */

static void need(CUresult result) {
    Error error;
    if (!cuda_check(&cuda, result, &error, "the GPU")) fail_msg("%s", error.message);
}

static int open_gpu(void **state) {
    (void)state;
    Error error;
    CUdevice device;
    CUcontext context;
    int major, minor;
    if (!cuda_driver_open(&cuda, &error)) {
        print_message("skipped: %s\n", error.message);
        exit(77);
    }
    need(cuda.init(0));
    need(cuda.device_get(&device, 0));
    need(cuda.context_retain(&context, device));
    need(cuda.context_set(context));
    need(cuda.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    need(cuda.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    capability = 10 * major + minor;
    need(cuda.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    FileMap image;
    assert_done(file_map(&image, image_path, &error), error);
    need(cuda.module_load(&module, image.data));
    file_unmap(&image);
    return 0;
}

static int close_gpu(void **state) {
    (void)state;
    CUdevice device;
    need(cuda.module_unload(module));
    need(cuda.stream_destroy(stream));
    need(cuda.device_get(&device, 0));
    need(cuda.context_release(device));
    return 0;
}

static CUdeviceptr upload(const void *data, size_t bytes) {
    CUdeviceptr memory;
    need(cuda.allocate(&memory, bytes));
    need(cuda.copy_in(memory, data, bytes, stream));
    return memory;
}

static CUdeviceptr unwritten(size_t bytes) {
    CUdeviceptr memory;
    need(cuda.allocate(&memory, bytes));
    return memory;
}

static void download(void *data, CUdeviceptr memory, size_t bytes) {
    need(cuda.copy_out(data, memory, bytes, stream));
    need(cuda.stream_wait(stream));
}

static void release(CUdeviceptr memory) {
    need(cuda.release(memory));
}

static void launch_warp(const char *kernel, unsigned shared_bytes, void **arguments) {
    CUfunction function;
    need(cuda.module_function(&function, module, kernel));
    need(cuda.launch(function, 1, 1, 1, LANES, 1, 1, shared_bytes, stream, arguments, NULL));
}

/* ---- mma ---- */

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

static void test_mma_bf16(void **state) {
    (void)state;
    check_layout(&bf16_format);
}

static void test_mma_e4m3(void **state) {
    (void)state;
    check_layout(&e4m3_format);
}

static void test_mma_mxfp8(void **state) {
    (void)state;
    check_layout(&mxfp8_format);
}

static void test_mma_nvfp4(void **state) {
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

static void test_e4m3_codes(void **state) {
    (void)state;
    need_format(&e4m3_format);
    for (uint32_t code = 0; code < 256; code++)
        assert_product(product(&e4m3_format, code, 0x38, 0, 0), e4m3_value(code), code);
}

static void test_scaled_codes(void **state) {
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

/* ---- ldmatrix ---- */

/* Rows in any order; registers: lane l has columns 2 (l % 4) and one more of row l / 4, of matrix i. */
static void test_load_matrix(void **state) {
    (void)state;
    enum { WIDTH = 16, HEIGHT = 64 };
    uint16_t elements[HEIGHT][WIDTH];
    int rows[32];
    uint32_t plain[LANES][4], transposed[LANES][4];
    for (int i = 0; i < HEIGHT * WIDTH; i++) elements[i / WIDTH][i % WIDTH] = (uint16_t)(i * 61);
    for (int i = 0; i < 32; i++) rows[i] = i * 37 % HEIGHT;
    CUdeviceptr in = upload(elements, sizeof elements), order = upload(rows, sizeof rows);
    CUdeviceptr out = unwritten(sizeof plain), out_transposed = unwritten(sizeof transposed);
    launch_warp("wrapper_load_matrix", 0, (void *[]){&out, &out_transposed, &in, &order});
    download(plain, out, sizeof plain);
    download(transposed, out_transposed, sizeof transposed);
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4; i++) {
            int row = lane / 4, column = lane % 4 * 2;
            const int *of = &rows[8 * i];
            uint32_t low = elements[of[row]][column], high = elements[of[row]][column + 1];
            assert_int_equal(plain[lane][i], low | high << 16);
            low = elements[of[column]][row], high = elements[of[column + 1]][row];
            assert_int_equal(transposed[lane][i], low | high << 16);
        }
    release(in), release(order), release(out), release(out_transposed);
}

/* ---- cp.async ---- */

typedef struct Vector {
    uint32_t word[4];
} Vector;

static void fill_vectors(Vector *vectors, int count) {
    for (int i = 0; i < 4 * count; i++) vectors[i / 4].word[i % 4] = 0x1000u + (uint32_t)i;
}

/* What is not valid becomes zeros, and is not read: the input ends there. */
static void test_copy_async(void **state) {
    (void)state;
    for (int valid = 1; valid <= LANES; valid = valid == 1 ? 23 : valid + 9) {
        Vector vectors[LANES], got[LANES];
        fill_vectors(vectors, LANES);
        CUdeviceptr in = upload(vectors, (size_t)valid * sizeof *vectors),
                    out = unwritten(sizeof got);
        launch_warp("wrapper_copy_async", sizeof got, (void *[]){&out, &in, &valid});
        download(got, out, sizeof got);
        memset(vectors + valid, 0, (size_t)(LANES - valid) * sizeof *vectors);
        for (int lane = 0; lane < LANES; lane++)
            assert_memory_equal(&got[lane], &vectors[LANES - 1 - lane], sizeof *got);
        release(in), release(out);
    }
}

static void test_copy_groups(void **state) {
    (void)state;
    Vector vectors[4 * LANES], got[4 * LANES];
    fill_vectors(vectors, 4 * LANES);
    CUdeviceptr in = upload(vectors, sizeof vectors), out = unwritten(sizeof got);
    launch_warp("wrapper_copy_groups", 0, (void *[]){&out, &in});
    download(got, out, sizeof got);
    assert_memory_equal(got, vectors, sizeof got);
    release(in), release(out);
}

/* ---- the rest ---- */

static void test_exp2(void **state) {
    (void)state;
    enum { COUNT = 301 };
    float in[COUNT], got[COUNT];
    for (int i = 0; i < COUNT; i++) in[i] = (float)(i - 150) * 0.873f;
    in[0] = -INFINITY, in[1] = INFINITY, in[2] = NAN, in[3] = 0, in[4] = -140, in[5] = -1e30f;
    CUdeviceptr numbers = upload(in, sizeof in), out = unwritten(sizeof got);
    int count = COUNT;
    launch_warp("wrapper_exp2", 0, (void *[]){&out, &numbers, &count});
    download(got, out, sizeof got);
    for (int i = 0; i < COUNT; i++) {
        float want = exp2f(in[i]);
        if (want < 0x1p-126f) want = 0;
        if (isnan(want) ? !isnan(got[i]) : fabsf(got[i] - want) > 0x1p-22f * want && got[i] != want)
            fail_msg("2^%g is %g, not %g", (double)in[i], (double)got[i], (double)want);
    }
    release(numbers), release(out);
}

enum { WARP_LINES = 16 };

/* The lines of the kernel wrapper_warp; a lane whose source is outside its segment keeps its own. */
static void expect_warp(int want[WARP_LINES][LANES], const int *x) {
    int sum = 0, least = x[0], most = x[0], odd = 0, halves[2] = {0, 0};
    for (int l = 0; l < LANES; l++) {
        sum += x[l], halves[l / 16] += x[l];
        least = x[l] < least ? x[l] : least;
        most = x[l] > most ? x[l] : most;
        odd = (int)((unsigned)odd | ((unsigned)x[l] & 1) << l);
    }
    for (int l = 0; l < LANES; l++) {
        int of_8 = l % 8;
        const int line[WARP_LINES] = {x[5],
                                      x[l - of_8 + 3],
                                      x[l ^ 17],
                                      x[l ^ 5],
                                      l + 3 < 32 ? x[l + 3] : x[l],
                                      of_8 + 3 < 8 ? x[l + 3] : x[l],
                                      l >= 3 ? x[l - 3] : x[l],
                                      of_8 >= 3 ? x[l - 3] : x[l],
                                      sum,
                                      least,
                                      most,
                                      odd,
                                      most > 1000,
                                      most < 1000,
                                      halves[l / 16],
                                      x[l ^ 1]};
        for (int i = 0; i < WARP_LINES; i++) want[i][l] = line[i];
    }
}

static void test_warp(void **state) {
    (void)state;
    int in[LANES], want[WARP_LINES][LANES], got[WARP_LINES][LANES];
    for (int l = 0; l < LANES; l++) in[l] = (l * 7919 + 13) % 1511 - 700;
    expect_warp(want, in);
    CUdeviceptr numbers = upload(in, sizeof in), out = unwritten(sizeof got);
    launch_warp("wrapper_warp", 0, (void *[]){&out, &numbers});
    download(got, out, sizeof got);
    for (int i = 0; i < WARP_LINES; i++)
        for (int l = 0; l < LANES; l++)
            if (got[i][l] != want[i][l])
                fail_msg("line %d, lane %d: %d, not %d", i, l, got[i][l], want[i][l]);
    release(numbers), release(out);
}

/* The argument, if any, is where the kernels' image has moved to. */
int main(int argc, char **argv) {
    if (argc > 1) image_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma_bf16),    cmocka_unit_test(test_mma_e4m3),
        cmocka_unit_test(test_mma_mxfp8),   cmocka_unit_test(test_mma_nvfp4),
        cmocka_unit_test(test_e4m3_codes),  cmocka_unit_test(test_scaled_codes),
        cmocka_unit_test(test_load_matrix), cmocka_unit_test(test_copy_async),
        cmocka_unit_test(test_copy_groups), cmocka_unit_test(test_exp2),
        cmocka_unit_test(test_warp),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
