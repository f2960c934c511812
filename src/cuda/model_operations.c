/* Launches of the operations that only nanochat's model has. */
#include "cuda/blocks.h"
#include "cuda/executor.h"
#include "cuda/workspace.h"

/* sums[count] += those of partials[count,blocks] */
static bool add_partial_sums(Call *call, CUdeviceptr sums, CUdeviceptr partials, int64_t count,
                             int64_t blocks) {
    void *arguments[] = {&sums, &partials, &blocks};
    return launch_only(call, "add_partial_sums", (Grid){count, 1, 1}, BLOCK_THREADS, 0, arguments);
}

/* Blocks for n numbers of the storage type, 16 bytes to a thread. */
static Grid elements_grid(const Call *call, int64_t n) {
    return (Grid){divide_up(n * dtype_size(call->storage), 16 * BLOCK_THREADS), 1, 1};
}

/* Lanes that share a head, each of which takes 16 bytes of both halves: a power of two. */
static unsigned head_lanes(const Call *call, int64_t D) {
    unsigned lanes = 1;
    while (lanes * 16 < D / 2 * dtype_size(call->storage)) lanes *= 2;
    return lanes;
}

/* Whole warps for all heads of a token; if they are too many for a block, it goes round, always full. */
static unsigned heads_threads(const QkvShape *shape, unsigned lanes) {
    const int64_t warps = divide_up((shape->H + 2 * shape->KV) * lanes, 32);
    const int64_t rounds = divide_up(warps, BLOCK_WARPS);
    return (unsigned)divide_up(warps, rounds) * 32;
}

bool launch_qkv_forward(Call *call) {
    QkvShape shape = call->operation->qkv;
    unsigned lanes = head_lanes(call, shape.D);
    CUdeviceptr *in = call->in;
    void *arguments[] = {&call->out[0], &call->out[1], &in[0],         &in[1], &in[2], &in[3],
                         &in[4],        &in[5],        &call->scalars, &shape, &lanes};
    return launch(call, "qkv_forward", (Grid){shape.N, 1, 1}, heads_threads(&shape, lanes), 0,
                  arguments);
}

bool launch_qkv_backward(Call *call) {
    QkvShape shape = call->operation->qkv;
    unsigned lanes = head_lanes(call, shape.D);
    CUdeviceptr *out = call->out, *in = call->in;
    void *arguments[] = {&out[0], &out[1], &out[2], &in[0], &in[1], &in[2],
                         &in[3],  &in[4],  &in[5],  &in[6], &shape, &lanes};
    return launch(call, "qkv_backward", (Grid){shape.N, 1, 1}, heads_threads(&shape, lanes), 0,
                  arguments);
}

bool launch_relu2_forward(Call *call) {
    int64_t n = call->operation->elements.n;
    void *arguments[] = {&call->out[0], &call->in[0], &n};
    return launch(call, "relu2_forward", elements_grid(call, n), BLOCK_THREADS, 0, arguments);
}

bool launch_relu2_backward(Call *call) {
    int64_t n = call->operation->elements.n;
    void *arguments[] = {&call->out[0], &call->in[0], &call->in[1], &n};
    return launch(call, "relu2_backward", elements_grid(call, n), BLOCK_THREADS, 0, arguments);
}

bool launch_gate_forward(Call *call) {
    GateShape shape = call->operation->gate;
    void *arguments[] = {&call->out[0], &call->in[0], &call->in[1], &shape};
    return launch(call, "gate_forward",
                  (Grid){divide_up(shape.N * shape.gates, BLOCK_THREADS), 1, 1}, BLOCK_THREADS, 0,
                  arguments);
}

bool launch_gate_backward(Call *call) {
    GateShape shape = call->operation->gate;
    const int64_t blocks = cuda_gate_blocks(shape.N);
    CUdeviceptr *in = call->in;
    void *arguments[] = {&call->out[0], &call->workspace, &in[0], &in[1], &in[2], &in[3], &shape};
    return launch(call, "gate_backward", (Grid){blocks, 1, 1}, BLOCK_THREADS, 0, arguments) &&
           add_partial_sums(call, call->out[1], call->workspace, shape.gates * shape.channels,
                            blocks);
}

bool launch_smear_forward(Call *call) {
    SmearShape shape = call->operation->smear;
    CUdeviceptr *in = call->in;
    void *arguments[] = {&call->out[0], &in[0], &in[1], &in[2], &in[3], &shape.T, &shape.C};
    return launch(call, "smear_forward", (Grid){shape.N, 1, 1},
                  row_threads(call, shape.C, BLOCK_THREADS), 0, arguments);
}

bool launch_smear_backward(Call *call) {
    SmearShape shape = call->operation->smear;
    const int64_t blocks = cuda_smear_blocks(shape.N);
    CUdeviceptr *in = call->in;
    void *arguments[] = {&call->out[0], &call->out[1], &call->workspace, &in[0],   &in[1],
                         &in[2],        &in[3],        &shape.N,         &shape.T, &shape.C};
    return launch(call, "smear_backward", (Grid){blocks, 1, 1}, BLOCK_THREADS, 0, arguments) &&
           add_partial_sums(call, call->out[2], call->workspace, 1, blocks);
}

bool launch_blend_forward(Call *call) {
    BlendShape shape = call->operation->blend;
    CUdeviceptr *in = call->in;
    void *arguments[] = {&call->out[0], &in[0], &in[1], &in[2], &in[3], &shape};
    return launch(call, "blend_forward", elements_grid(call, shape.n), BLOCK_THREADS, 0, arguments);
}

bool launch_blend_backward(Call *call) {
    BlendShape shape = call->operation->blend;
    const int64_t blocks = cuda_blend_blocks(shape.n);
    const CUdeviceptr of_a = call->workspace + (CUdeviceptr)(blocks * dtype_size(DTYPE_F64));
    CUdeviceptr *out = call->out, *in = call->in;
    void *arguments[] = {&out[0], &out[1], &call->workspace, &in[0], &in[1],
                         &in[2],  &in[3],  &in[4],           &in[5], &shape};
    return launch(call, "blend_backward", (Grid){blocks, 1, 1}, BLOCK_THREADS, 0, arguments) &&
           add_partial_sums(call, out[3], call->workspace, 1, blocks) &&
           (!out[2] || add_partial_sums(call, out[2], of_a, 1, blocks));
}
