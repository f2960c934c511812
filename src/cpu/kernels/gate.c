/* Gates from the first few channels of each token's activation:
 * gates[n,g] = factor * sigmoid(x[n,0..channels-1] . weight[g]). */
#include "base/integer.h"
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

/* The weight's gradient is summed over fixed blocks of rows, each into its part of the workspace, then over
 * the blocks in their order: the same bits for any number of threads. */
enum { ROWS = 64 };

size_t KERNEL(gate_workspace)(GateShape shape) {
    return (size_t)divide_up(shape.N, ROWS) * (size_t)(shape.gates * shape.channels) *
           sizeof(float);
}

static float dot(const Storage *a, const Storage *b, int64_t count) {
    vfloat sum = {0};
    for (int64_t c = 0; c < count; c += W)
        sum = load_columns(a, c, count) * load_columns(b, c, count) + sum;
    return vsum(sum);
}

void KERNEL(gate_forward)(float *gates, const void *x, const void *weight, GateShape shape) {
    const int64_t channels = shape.channels;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < shape.N; n++) {
        const Storage *row = (const Storage *)x + n * shape.C;
        for (int64_t g = 0; g < shape.gates; g++) {
            float z = dot(row, (const Storage *)weight + g * channels, channels);
            gates[n * shape.gates + g] = shape.factor * vsigmoid(splat(z))[0];
        }
    }
}

/* With s = gate / factor: factor sigmoid' = gate (1 - s). */
static void backward_row(Storage *dx, float *dweight, const float *dgates, const float *gates,
                         const Storage *x, const Storage *weight, GateShape shape) {
    const int64_t channels = shape.channels;
    for (int64_t c = 0; c < channels; c += W) {
        const vfloat row = load_columns(x, c, channels);
        vfloat sum = load_columns(dx, c, channels);
        for (int64_t g = 0; g < shape.gates; g++) {
            const vfloat dz = splat(dgates[g] * gates[g] * (1 - gates[g] / shape.factor));
            float *to = dweight + g * channels;
            sum = dz * load_columns(weight + g * channels, c, channels) + sum;
            row_store_f32(to, c, channels, dz * row + row_load_f32(to, c, channels));
        }
        row_store(dx, c, channels, sum);
    }
}

void KERNEL(gate_backward)(void *dx, float *dweight, const float *dgates, const float *gates,
                           const void *x, const void *weight, void *workspace, GateShape shape) {
    float *partial = workspace;
    const int64_t blocks = divide_up(shape.N, ROWS), size = shape.gates * shape.channels;
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; block++) {
        float *sums = partial + block * size;
        memset(sums, 0, (size_t)size * sizeof *sums);
        for (int64_t n = block * ROWS; n < smaller((block + 1) * ROWS, shape.N); n++)
            backward_row((Storage *)dx + n * shape.C, sums, dgates + n * shape.gates,
                         gates + n * shape.gates, (const Storage *)x + n * shape.C, weight, shape);
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < size; i++) {
        double sum = 0;
        for (int64_t block = 0; block < blocks; block++) sum += (double)partial[block * size + i];
        dweight[i] += (float)sum;
    }
}
