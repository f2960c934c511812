/* The optimizer's operations. */
#include "cuda/blocks.h"
#include "cuda/executor.h"
#include "cuda/workspace.h"

bool launch_gradient_norm(Call *call) {
    int64_t n = call->operation->elements.n, count = CUDA_SUM_BLOCKS;
    void *partials[] = {&call->workspace, &call->in[0], &n};
    void *norm[] = {&call->out[0], &call->workspace, &count, &call->scalars};
    return launch_only(call, "gradient_norm_partials", (Grid){count, 1, 1}, BLOCK_THREADS, 0,
                       partials) &&
           launch_only(call, "gradient_norm", (Grid){1, 1, 1}, BLOCK_THREADS, 0, norm);
}

bool launch_adamw(Call *call) {
    enum { AT_ONCE = BLOCK_WARPS * STATE_BLOCK, BLOCKS_MOST = 1024 };
    AdamwShape shape = call->operation->adamw;
    StateCodes codes = {*state_code(true), *state_code(false)};
    CUdeviceptr *out = call->out, *norm = &call->in[0];
    void *coded[] = {&out[0], &out[1], &out[2],        &out[3], &out[4], &out[5],
                     &out[6], norm,    &call->scalars, &shape,  &codes};
    void *plain[] = {&out[0], &out[1], &out[2], &out[3], &out[6], norm, &call->scalars, &shape};
    const Grid grid = {smaller(divide_up(shape.n, AT_ONCE), BLOCKS_MOST), 1, 1};
    if (shape.format == STATE_8BIT) return launch(call, "adamw8", grid, BLOCK_THREADS, 0, coded);
    const char *kernel = shape.format == STATE_BF16 ? "adamw16" : "adamw32";
    return launch(call, kernel, grid, BLOCK_THREADS, 0, plain);
}

/* Tiles that cover a matrix which is transposed. */
static Grid tiles(int64_t rows, int64_t columns) {
    return (Grid){divide_up(columns, MUON_TILE), divide_up(rows, MUON_TILE), 1};
}

bool launch_muon_begin(Call *call) {
    MuonShape shape = call->operation->muon;
    int64_t rows = shape.rows, columns = shape.columns;
    CUdeviceptr *update = &call->out[0], *momentum = &call->out[1], *gradient = &call->out[2];
    CUdeviceptr *squares = &call->workspace, *norm = &call->in[0];
    void *begin[] = {gradient, momentum, squares, norm, &call->scalars, &shape};
    void *factors[] = {squares, &rows};
    void *scale[] = {update, gradient, squares, &columns};
    void *transposed[] = {update, gradient, squares, &rows, &columns};
    const char *kernel = shape.momentum == DTYPE_BF16 ? "muon_momentum16" : "muon_momentum32";
    const unsigned threads = row_threads(call, columns, BLOCK_THREADS);
    return launch_only(call, kernel, (Grid){rows, 1, 1}, threads, 0, begin) &&
           launch_only(call, "muon_begin_factors", (Grid){1, 1, 1}, WIDE_BLOCK_THREADS, 0,
                       factors) &&
           (rows > columns ? launch(call, "muon_scale_rows_transposed", tiles(rows, columns),
                                    BLOCK_THREADS, 0, transposed)
                           : launch(call, "muon_scale_rows", (Grid){rows, 1, 1},
                                    row_threads(call, columns, BLOCK_THREADS), 0, scale));
}

bool launch_muon_polynomial(Call *call) {
    PolynomialShape shape = call->operation->polynomial;
    void *arguments[] = {&call->out[0], &call->in[0], &call->in[1], &shape};
    return launch(call, "muon_polynomial", (Grid){shape.m, 1, 1},
                  row_threads(call, shape.m, BLOCK_THREADS), 0, arguments);
}

bool launch_muon_end(Call *call) {
    MuonShape shape = call->operation->muon;
    const bool tall = shape.rows > shape.columns; /* and the update is transposed */
    int64_t m = smaller(shape.rows, shape.columns), n = tall ? shape.rows : shape.columns;
    CUdeviceptr *out = call->out, *update = &call->in[0], *norm = &call->in[1];
    CUdeviceptr *squares = &call->workspace;
    void *sums[] = {squares, update, &m, &n};
    void *factors[] = {squares, &out[2], norm, &n, &m, &shape.beta2};
    void *weights[] = {&out[0], &out[1], update, squares, norm, &call->scalars, &m, &n, &shape};
    return (m == n ? launch(call, "muon_square_rows", (Grid){divide_up(m, BLOCK_WARPS), 1, 1},
                            BLOCK_THREADS, 0, sums)
                   : launch(call, "muon_square_columns", (Grid){divide_up(n, MUON_COLUMNS), 1, 1},
                            WIDE_BLOCK_THREADS, 0, sums)) &&
           launch_only(call, "muon_end_factors", (Grid){1, 1, 1}, WIDE_BLOCK_THREADS, 0, factors) &&
           (tall ? launch(call, "muon_update_transposed", tiles(n, m), BLOCK_THREADS, 0, weights)
                 : launch(call, "muon_update_rows", (Grid){m, 1, 1},
                          row_threads(call, n, BLOCK_THREADS), 0, weights));
}
