/* The embedding of tokens: a gather of rows, and its gradient, a scatter that adds. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"

#include <omp.h>

void KERNEL(embedding_forward)(void *out, const int32_t *tokens, const void *weight, int64_t N,
                               int64_t C) {
    Storage *rows = out;
    const Storage *table = weight;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < N; n++)
        if (tokens[n] >= 0)
            memcpy(rows + n * C, table + tokens[n] * C, (size_t)C * sizeof *rows);
        else
            memset(rows + n * C, 0, (size_t)C * sizeof *rows);
}

/* Each thread takes some of the columns and all the tokens, so that rows of a repeated token are
 * added in the order of the tokens. */
void KERNEL(embedding_backward)(float *dweight, const void *dout, const int32_t *tokens, int64_t N,
                                int64_t C) {
    const int64_t vectors = (C + W - 1) / W;
#pragma omp parallel
    {
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t begin = vectors * thread / threads * W, end = vectors * (thread + 1) / threads * W;
        for (int64_t n = 0; n < N; n++) {
            float *sums = dweight + tokens[n] * C;
            const Storage *row = (const Storage *)dout + n * C;
            for (int64_t c = begin; c < end; c += W)
                row_store_f32(sums, c, C, row_load_f32(sums, c, C) + row_load(row, c, C));
        }
    }
}
