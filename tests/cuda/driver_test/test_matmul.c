/* cuBLASLt: results against a plain loop, what is refused, and the algorithms. */
#include "rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* D[m, n] = alpha op(A) op(B) + beta D in fp32, in place; leading dimensions are larger than needed. */
typedef struct Case {
    int m, n, k, batch;
    cublasOperation_t transpose_a, transpose_b;
    float alpha, beta;
    int algorithm; /* of those that the heuristic gives */
} Case;

typedef struct Matrix {
    cublasLtMatrixLayout_t layout;
    CUdeviceptr memory;
    float *host; /* pinned */
    int leading, stride, elements;
} Matrix;

enum { WORKSPACE = 1 << 22, ALGORITHMS = 8 };

typedef struct Matmul {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t description;
    cublasLtMatmulPreference_t preference;
    Matrix a, b, d;
    CUdeviceptr workspace;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    int count;
} Matmul;

static float value_at(int i) {
    return (float)((i * 37 + 11) % 64 - 32) / 16;
}

static Matrix make_matrix(Rig *rig, cudaDataType_t type, int rows, int columns, int batch) {
    Matrix matrix = {.leading = rows + 3};
    matrix.stride = matrix.leading * columns + 5;
    matrix.elements = matrix.stride * batch;
    size_t bytes = (size_t)matrix.elements * sizeof(float);
    matrix.host = pinned_memory(rig, bytes);
    matrix.memory = device_memory(rig, bytes);
    for (int i = 0; i < matrix.elements; i++) matrix.host[i] = value_at(i);
    DO(rig->cublaslt.layout_create(&matrix.layout, type, (uint64_t)rows, (uint64_t)columns,
                                   matrix.leading));
    int64_t stride = matrix.stride;
    DO(rig->cublaslt.layout_set(matrix.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                sizeof batch));
    DO(rig->cublaslt.layout_set(matrix.layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                sizeof stride));
    DO(rig->cuda.copy_in(matrix.memory, matrix.host, bytes, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    return matrix;
}

static void end_matrix(Rig *rig, Matrix *matrix) {
    DO(rig->cublaslt.layout_destroy(matrix->layout));
    DO(rig->cuda.release(matrix->memory));
    DO(rig->cuda.release_host(matrix->host));
}

static Matmul make_matmul(Rig *rig, const Case *c) {
    Matmul matmul = {0};
    bool flip_a = c->transpose_a != CUBLAS_OP_N, flip_b = c->transpose_b != CUBLAS_OP_N;
    matmul.a = make_matrix(rig, CUDA_R_32F, flip_a ? c->k : c->m, flip_a ? c->m : c->k, c->batch);
    matmul.b = make_matrix(rig, CUDA_R_32F, flip_b ? c->n : c->k, flip_b ? c->k : c->n, c->batch);
    matmul.d = make_matrix(rig, CUDA_R_32F, c->m, c->n, c->batch);
    matmul.workspace = device_memory(rig, WORKSPACE);
    DO(rig->cublaslt.create(&matmul.handle));
    DO(rig->cublaslt.desc_create(&matmul.description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    DO(rig->cublaslt.desc_set(matmul.description, CUBLASLT_MATMUL_DESC_TRANSA, &c->transpose_a,
                              sizeof c->transpose_a));
    DO(rig->cublaslt.desc_set(matmul.description, CUBLASLT_MATMUL_DESC_TRANSB, &c->transpose_b,
                              sizeof c->transpose_b));
    uint64_t workspace = WORKSPACE;
    DO(rig->cublaslt.preference_create(&matmul.preference));
    DO(rig->cublaslt.preference_set(matmul.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                    &workspace, sizeof workspace));
    DO(rig->cublaslt.heuristic(matmul.handle, matmul.description, matmul.a.layout, matmul.b.layout,
                               matmul.d.layout, matmul.d.layout, matmul.preference, ALGORITHMS,
                               matmul.found, &matmul.count));
    return matmul;
}

static void end_matmul(Rig *rig, Matmul *matmul) {
    DO(rig->cuda.stream_wait(rig->stream));
    end_matrix(rig, &matmul->a);
    end_matrix(rig, &matmul->b);
    end_matrix(rig, &matmul->d);
    DO(rig->cuda.release(matmul->workspace));
    DO(rig->cublaslt.desc_destroy(matmul->description));
    DO(rig->cublaslt.preference_destroy(matmul->preference));
    DO(rig->cublaslt.destroy(matmul->handle));
}

/* Moves of pointers, and a workspace, that a scenario wants otherwise than they should be. */
typedef struct Change {
    size_t a, workspace; /* bytes further */
    size_t workspace_bytes;
} Change;

static int queue_matmul(Rig *rig, Matmul *matmul, const Case *c, Change change) {
    return (int)rig->cublaslt.matmul(
        matmul->handle, matmul->description, &c->alpha, (void *)(matmul->a.memory + change.a),
        matmul->a.layout, (void *)matmul->b.memory, matmul->b.layout, &c->beta,
        (void *)matmul->d.memory, matmul->d.layout, (void *)matmul->d.memory, matmul->d.layout,
        &matmul->found[c->algorithm].algo, (void *)(matmul->workspace + change.workspace),
        change.workspace_bytes, rig->stream);
}

static float element(const Matrix *matrix, bool flipped, int batch, int row, int column) {
    int i = flipped ? row * matrix->leading + column : column * matrix->leading + row;
    return value_at(batch * matrix->stride + i);
}

/* Whether all of D, and the gaps in it, hold what they should. */
static bool matches(const Matmul *matmul, const Case *c) {
    bool flip_a = c->transpose_a != CUBLAS_OP_N, flip_b = c->transpose_b != CUBLAS_OP_N;
    for (int i = 0; i < matmul->d.elements; i++) {
        int batch = i / matmul->d.stride, row = i % matmul->d.stride % matmul->d.leading;
        int column = i % matmul->d.stride / matmul->d.leading;
        double expected = value_at(i);
        if (row < c->m && column < c->n) {
            expected *= (double)c->beta;
            for (int k = 0; k < c->k; k++)
                expected += (double)c->alpha * element(&matmul->a, flip_a, batch, row, k) *
                            element(&matmul->b, flip_b, batch, k, column);
        }
        if (!(fabs(expected - (double)matmul->d.host[i]) <= 1e-3)) {
            fprintf(stderr, "%d x %d x %d, element %d: %g, not %g\n", c->m, c->n, c->k, i,
                    (double)matmul->d.host[i], expected);
            return false;
        }
    }
    return true;
}

static bool check_case(Rig *rig, const Case *c) {
    Matmul matmul = make_matmul(rig, c);
    DO(queue_matmul(rig, &matmul, c, (Change){.workspace_bytes = WORKSPACE}));
    DO(rig->cuda.copy_out(matmul.d.host, matmul.d.memory, (size_t)matmul.d.elements * 4,
                          rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    bool right = matches(&matmul, c);
    end_matmul(rig, &matmul);
    return right;
}

static bool multiplies(Rig *rig) {
    const Case cases[] = {
        {1, 1, 1, 1, CUBLAS_OP_N, CUBLAS_OP_N, 1, 0, 0},
        {33, 7, 65, 2, CUBLAS_OP_T, CUBLAS_OP_N, 1, 0, 0},
        {33, 7, 65, 2, CUBLAS_OP_T, CUBLAS_OP_N, 1, 0, 1},
        {64, 12, 8, 1, CUBLAS_OP_N, CUBLAS_OP_N, 0.5f, 1, 0},
        {31, 50, 600, 1, CUBLAS_OP_N, CUBLAS_OP_T, 1, 1, 0},
        {300, 5, 520, 1, CUBLAS_OP_T, CUBLAS_OP_N, 1, 0, 1},
        {40, 9, 1100, 1, CUBLAS_OP_N, CUBLAS_OP_T, 2, 0.5f, 1},
        {5, 300, 3, 3, CUBLAS_OP_T, CUBLAS_OP_T, 1, 0, 0},
    };
    bool right = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        right = check_case(rig, &cases[i]) && right;
    return right;
}

static const Case plain = {61,          40, 125, 1, CUBLAS_OP_N,
                           CUBLAS_OP_N, 1,  0,   0}; /* columns of 16 bytes' multiples */

/* Each algorithm adds in an order of its own and takes a time of its own. */
static bool algorithms_differ(Rig *rig) {
    Case c = plain;
    Matmul matmul = make_matmul(rig, &c);
    CUevent start, end;
    DO(rig->cuda.event_create(&start, 0));
    DO(rig->cuda.event_create(&end, 0));
    float times[ALGORITHMS];
    bool need_workspace = false, differ = true;
    for (c.algorithm = 0; c.algorithm < matmul.count; c.algorithm++) {
        DO(rig->cuda.event_record(start, rig->stream));
        DO(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = WORKSPACE}));
        DO(rig->cuda.event_record(end, rig->stream));
        DO(rig->cuda.stream_wait(rig->stream));
        DO(rig->cuda.event_elapsed(&times[c.algorithm], start, end));
        for (int i = 0; i < c.algorithm; i++) differ = differ && times[i] != times[c.algorithm];
        need_workspace = need_workspace || matmul.found[c.algorithm].workspaceSize > 0;
    }
    DO(rig->cuda.event_destroy(start));
    DO(rig->cuda.event_destroy(end));
    bool several = matmul.count >= 4;
    end_matmul(rig, &matmul);
    return several && need_workspace && differ;
}

/* The place among the heuristic's of the first algorithm that needs workspace. */
static int hungry(const Matmul *matmul) {
    int i = 0;
    while (!matmul->found[i].workspaceSize) i++;
    return i;
}

static bool refusals(Rig *rig) {
    Case c = plain;
    Matmul matmul = make_matmul(rig, &c);
    c.algorithm = hungry(&matmul);
    size_t enough = matmul.found[c.algorithm].workspaceSize;
    const int invalid = CUBLAS_STATUS_INVALID_VALUE;
    bool right =
        FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = enough - 1}), invalid) &&
        FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = enough, .workspace = 16}),
              invalid) &&
        FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = 2 * WORKSPACE}),
              invalid) &&
        FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = enough, .a = 2}),
              invalid) &&
        FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = enough, .a = 4}),
              CUBLAS_STATUS_NOT_SUPPORTED) &&
        FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = enough, .a = 1 << 14}),
              invalid);
    int64_t leading = c.m - 1;
    DO(rig->cublaslt.layout_set(matmul.a.layout, CUBLASLT_MATRIX_LAYOUT_LD, &leading,
                                sizeof leading));
    right = right &&
            FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = enough}), invalid);
    leading = 4 * matmul.a.leading; /* the last columns are then outside */
    DO(rig->cublaslt.layout_set(matmul.a.layout, CUBLASLT_MATRIX_LAYOUT_LD, &leading,
                                sizeof leading));
    right = right &&
            FAILS(queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = enough}), invalid);
    end_matmul(rig, &matmul);
    return right;
}

static bool fails_once(Rig *rig) {
    Matmul matmul = make_matmul(rig, &plain);
    Case c = plain;
    int failures = 0;
    for (c.algorithm = 0; c.algorithm < matmul.count; c.algorithm++)
        failures += queue_matmul(rig, &matmul, &c, (Change){.workspace_bytes = WORKSPACE}) != 0;
    end_matmul(rig, &matmul);
    return failures == 1;
}

/* How many algorithms there are for FP8 operands of these transposes and this width. */
static int fp8_algorithms(Rig *rig, cublasOperation_t transpose_a, int width) {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t description;
    cublasLtMatmulPreference_t preference;
    cublasLtMatrixLayout_t operand, result;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    int count = 0;
    uint64_t side = (uint64_t)width;
    DO(rig->cublaslt.create(&handle));
    DO(rig->cublaslt.desc_create(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    DO(rig->cublaslt.desc_set(description, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a,
                              sizeof transpose_a));
    DO(rig->cublaslt.preference_create(&preference));
    DO(rig->cublaslt.layout_create(&operand, CUDA_R_8F_E4M3, side, side, width));
    DO(rig->cublaslt.layout_create(&result, CUDA_R_16BF, side, side, width));
    rig->cublaslt.heuristic(handle, description, operand, operand, result, result, preference,
                            ALGORITHMS, found, &count);
    DO(rig->cublaslt.layout_destroy(operand));
    DO(rig->cublaslt.layout_destroy(result));
    DO(rig->cublaslt.preference_destroy(preference));
    DO(rig->cublaslt.desc_destroy(description));
    DO(rig->cublaslt.destroy(handle));
    return count;
}

static bool fp8_is_transposed_only(Rig *rig) {
    return fp8_algorithms(rig, CUBLAS_OP_T, 64) > 0 && fp8_algorithms(rig, CUBLAS_OP_N, 64) == 0 &&
           fp8_algorithms(rig, CUBLAS_OP_T, 60) == 0;
}

static bool fp8_in_any_order(Rig *rig) {
    return fp8_algorithms(rig, CUBLAS_OP_T, 64) > 0 && fp8_algorithms(rig, CUBLAS_OP_N, 64) > 0;
}

static bool no_fp8(Rig *rig) {
    return fp8_algorithms(rig, CUBLAS_OP_T, 64) == 0;
}

/* Whether a scale mode is refused for the chip's sake rather than the test driver's. */
static bool sets_scale_mode(Rig *rig) {
    Matmul matmul = make_matmul(rig, &plain);
    int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    DO(rig->cublaslt.desc_set(matmul.description, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode,
                              sizeof mode));
    bool refused =
        FAILS(queue_matmul(rig, &matmul, &plain, (Change){0}), CUBLAS_STATUS_NOT_SUPPORTED);
    end_matmul(rig, &matmul);
    return refused;
}

static void products_are_right(void **state) {
    (void)state;
    expect(multiplies, RIGHT, NULL);
    expect_in(multiplies, "TEST_GPU_SEED=5", RIGHT, NULL);
}

static void there_are_several_algorithms(void **state) {
    (void)state;
    expect(algorithms_differ, RIGHT, NULL);
    expect_in(fails_once, "TEST_GPU_FAULT=matmul:3", RIGHT, "algorithm 3 fails");
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    expect(refusals, RIGHT, "leading dimension");
}

static void fp8_follows_the_chip(void **state) {
    (void)state;
    expect(fp8_is_transposed_only, RIGHT, NULL);
    expect_in(fp8_is_transposed_only, "TEST_GPU_CHIP=h100", RIGHT, NULL);
    expect_in(fp8_in_any_order, "TEST_GPU_CHIP=b200", RIGHT, NULL);
    expect_in(no_fp8, "TEST_GPU_CHIP=a100", RIGHT, "no FP8");
    expect(sets_scale_mode, RIGHT, "is not modelled");
    expect_in(sets_scale_mode, "TEST_GPU_CHIP=rtx-4090", RIGHT, "this chip has no such scale mode");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(there_are_several_algorithms),
        cmocka_unit_test(wrong_operands_are_refused),
        cmocka_unit_test(fp8_follows_the_chip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
