/* Matrix products against double precision: every type, layout and addend; with oneDNN's bf16 products
 * where the processor has them, then as on a processor that has none. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "cpu/matmul.h"

typedef struct Matrix {
    float *exact; /* what is stored, as fp32 */
    void *stored;
    Dtype dtype;
} Matrix;

static Matrix random_matrix(int64_t elements, Dtype dtype, uint32_t part) {
    Error error;
    Matrix matrix = {.dtype = dtype};
    matrix.exact = allocate((size_t)elements, sizeof(float), &error);
    matrix.stored = allocate((size_t)elements, (size_t)dtype_size(dtype), &error);
    assert_true(matrix.exact && matrix.stored);
    for (int64_t i = 0; i < elements; i++) {
        float value = random_normal(1, random_stream(RANDOM_INIT, part), (uint64_t)i);
        bf16 half = bf16_from_float(value);
        matrix.exact[i] = dtype == DTYPE_BF16 ? bf16_to_float(half) : value;
        if (dtype == DTYPE_BF16)
            ((bf16 *)matrix.stored)[i] = half;
        else
            ((float *)matrix.stored)[i] = value;
    }
    return matrix;
}

static void free_matrix(Matrix *matrix) {
    free(matrix->exact);
    free(matrix->stored);
}

static double product(const MatmulShape *shape, const Matrix *a, const Matrix *b, int64_t m,
                      int64_t n, double *magnitude) {
    double sum = 0;
    for (int64_t k = 0; k < shape->K; k++) {
        double left = (double)a->exact[shape->transpose_a ? k * shape->M + m : m * shape->K + k];
        double right = (double)b->exact[shape->transpose_b ? n * shape->K + k : k * shape->N + n];
        sum += left * right;
        *magnitude += fabs(left * right);
    }
    return sum;
}

static void check_product(MatmulShape shape, MatmulTypes types, MatmulAddend addend) {
    Error error;
    Matrix a = random_matrix(shape.M * shape.K, types.a, 1);
    Matrix b = random_matrix(shape.K * shape.N, types.b, 2);
    Matrix out = random_matrix(shape.M * shape.N, types.out, 3);
    Matrix other = random_matrix(shape.M * shape.N, types.out, 4);
    Matmul *matmul = matmul_create(shape, types, addend, &error);
    assert_done(matmul, error);
    void *scratch = allocate((size_t)matmul_scratch(matmul), 1, &error);
    const void *added = addend == ADDEND_OTHER ? other.stored
                        : addend == ADDEND_OUT ? out.stored
                                               : NULL;
    assert_done(matmul_run(matmul, out.stored, a.stored, b.stored, added, scratch, &error), error);
    for (int64_t i = 0; i < shape.M * shape.N; i++) {
        double start = addend == ADDEND_OTHER ? (double)other.exact[i]
                       : addend == ADDEND_OUT ? (double)out.exact[i]
                                              : 0;
        double magnitude = fabs(start);
        double exact = start + product(&shape, &a, &b, i / shape.N, i % shape.N, &magnitude);
        bool half = types.out == DTYPE_BF16;
        double got = half ? (double)bf16_to_float(((bf16 *)out.stored)[i])
                          : (double)((float *)out.stored)[i];
        double allowed = magnitude * 1e-6 + (half ? fabs(exact) / 256 : 0);
        if (!(fabs(got - exact) <= allowed))
            fail_msg("M %d N %d K %d: %g, not %g", (int)shape.M, (int)shape.N, (int)shape.K, got,
                     exact);
    }
    matmul_free(matmul);
    free(scratch);
    free_matrix(&a), free_matrix(&b), free_matrix(&out), free_matrix(&other);
}

static void test_products(void **state) {
    (void)state;
    static const MatmulShape shapes[] = {
        {.M = 1, .N = 1, .K = 1}, {.M = 7, .N = 33, .K = 129}, {.M = 64, .N = 48, .K = 31}};
    static const MatmulTypes types[] = {{DTYPE_F32, DTYPE_F32, DTYPE_F32},
                                        {DTYPE_BF16, DTYPE_BF16, DTYPE_BF16},
                                        {DTYPE_F32, DTYPE_BF16, DTYPE_BF16}};
    for (int s = 0; s < 3; s++)
        for (int t = 0; t < 3; t++)
            for (int layout = 0; layout < 4; layout++)
                for (int addend = ADDEND_NONE; addend <= ADDEND_OTHER; addend++) {
                    MatmulShape shape = shapes[s];
                    shape.transpose_a = layout & 1, shape.transpose_b = layout & 2;
                    check_product(shape, types[t], (MatmulAddend)addend);
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    int status = 1;
    pid_t child = fork();
    if (child == 0) { /* oneDNN reads this once, before its first use */
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
        exit(cmocka_run_group_tests(tests, NULL, NULL));
    }
    waitpid(child, &status, 0);
    return cmocka_run_group_tests(tests, NULL, NULL) || status;
}
