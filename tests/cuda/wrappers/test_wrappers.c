/* The functions of cuda/kernels/seam.h against the PTX ISA, on whatever libcuda.so.1 is found: the test GPU
 * in its modes, with the PTX of each chip, or a real one. Matrices hold numbers that every format and every
 * accumulator keeps exactly, so that results are equal however the hardware rounds. */
#include <math.h>
#include <string.h>

#include "device.h"
#include "mma.h"

static const char *image_path = WRAPPERS_IMAGE;

static int open_device(void **state) {
    (void)state;
    device_open(image_path);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    device_close();
    return 0;
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
    return cmocka_run_group_tests(tests, open_device, close_device);
}
