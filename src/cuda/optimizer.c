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
