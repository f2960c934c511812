/* The table from operation kind to what queues it, and the operations that take a line or two.
 * What each computes is said in cpu/kernels.h. */
#include "cuda/blocks.h"
#include "cuda/executor.h"
#include "cuda/workspace.h"

unsigned row_threads(const Call *call, int64_t length, int64_t most) {
    const int64_t lanes = 16 / dtype_size(call->storage);
    return (unsigned)smaller(divide_up(length, 32 * lanes) * 32, most);
}

static bool embedding_forward(Call *call) {
    int64_t N = call->operation->embedding.N, C = call->operation->embedding.C;
    void *arguments[] = {&call->out[0], &call->in[0], &call->in[1], &N, &C};
    const Grid grid = {divide_up(N, BLOCK_WARPS), 1, 1};
    return launch(call, "embedding_forward", grid, BLOCK_THREADS, 0, arguments);
}

static bool embedding_backward(Call *call) {
    enum { BLOCKS_MOST = 1024 };
    int64_t N = call->operation->embedding.N, C = call->operation->embedding.C;
    void *arguments[] = {&call->out[0], &call->in[0], &call->in[1], &N, &C};
    const Grid grid = {smaller(call->operation->embedding.V, BLOCKS_MOST), 1, 1};
    return launch(call, "embedding_backward", grid, BLOCK_THREADS, 0, arguments);
}

static bool rmsnorm_forward(Call *call) {
    int64_t N = call->operation->norm.N, C = call->operation->norm.C;
    float eps = call->operation->norm.eps;
    void *arguments[] = {&call->out[0], &call->out[1], &call->in[0], &call->in[1], &N, &C, &eps};
    const Grid grid = {divide_up(N, BLOCK_WARPS), 1, 1};
    return launch(call, "rmsnorm_forward", grid, BLOCK_THREADS, 0, arguments);
}

static bool rmsnorm_backward(Call *call) {
    int64_t N = call->operation->norm.N, C = call->operation->norm.C;
    int64_t blocks = cuda_rmsnorm_blocks(N);
    CUdeviceptr *in = call->in;
    void *rows[] = {&call->out[0], &call->workspace, &in[0], &in[1], &in[2],
                    &in[3],        &in[4],           &N,     &C};
    void *weight[] = {&call->out[1], &call->workspace, &blocks, &C};
    const bool weighted = in[4] != 0;
    if (!launch(call, "rmsnorm_backward", (Grid){blocks, 1, 1}, row_threads(call, C, BLOCK_THREADS),
                weighted ? C * dtype_size(DTYPE_F32) : 0, rows))
        return false;
    return !weighted ||
           launch_only(call, "rmsnorm_backward_weight", (Grid){divide_up(C, COLUMN_SUMS), 1, 1},
                       COLUMN_SUMS_THREADS, 0, weight);
}

static bool matmul(Call *call) {
    const Executor *executor = call->executor;
    int index = (int)(call->operation - executor->program->operations);
    const ProductOperands operands = {.out = call->out[0],
                                      .a = call->in[0],
                                      .b = call->in[1],
                                      .addend = call->in[2],
                                      .workspace = call->workspace};
    return matmul_run(&executor->matmuls, index, &operands, call->stream, call->error);
}

static bool rope(Call *call) {
    int64_t T = call->operation->rope.T, heads = call->operation->rope.heads;
    int64_t rotated = call->operation->rope.rotated, D = call->operation->rope.D;
    float sign = call->operation->kind == OP_ROPE_BACKWARD ? -1 : 1;
    void *arguments[] = {
        &call->out[0], &call->in[0], &call->in[1], &call->in[2], &call->scalars, &T,
        &heads,        &rotated,     &D,           &sign};
    return launch(call, "rope", (Grid){call->operation->rope.N, 1, 1},
                  row_threads(call, heads * (D / 2), BLOCK_THREADS), 0, arguments);
}

static bool swiglu_forward(Call *call) {
    int64_t F = call->operation->swiglu.F;
    void *arguments[] = {&call->out[0], &call->in[0], &F};
    return launch(call, "swiglu_forward", (Grid){call->operation->swiglu.N, 1, 1},
                  row_threads(call, F, BLOCK_THREADS), 0, arguments);
}

static bool swiglu_backward(Call *call) {
    int64_t F = call->operation->swiglu.F;
    void *arguments[] = {&call->out[0], &call->in[0], &call->in[1], &F};
    return launch(call, "swiglu_backward", (Grid){call->operation->swiglu.N, 1, 1},
                  row_threads(call, F, BLOCK_THREADS), 0, arguments);
}

static bool cross_entropy(Call *call) {
    CrossEntropyShape shape = call->operation->cross_entropy;
    void *arguments[] = {&call->out[0], &call->out[1], &call->out[2], &call->in[0], &shape};
    return launch(call, "cross_entropy", (Grid){shape.N, 1, 1},
                  row_threads(call, shape.stride, WIDE_BLOCK_THREADS), 0, arguments);
}

static bool soft_cap(Call *call) {
    int64_t n = call->operation->soft_cap.n;
    float cap = call->operation->soft_cap.cap;
    void *arguments[] = {&call->out[0], &call->in[0], &n, &cap};
    const Grid grid = {divide_up(n, BLOCK_THREADS * (16 / dtype_size(DTYPE_F32))), 1, 1};
    return launch_only(call, "soft_cap", grid, BLOCK_THREADS, 0, arguments);
}

static bool loss_sum(Call *call) {
    int64_t n = call->operation->elements.n;
    void *arguments[] = {&call->out[0], &call->in[0], &n};
    return launch_only(call, "loss_sum", (Grid){1, 1, 1}, WIDE_BLOCK_THREADS, 0, arguments);
}

static bool (*const launchers[OPERATION_KINDS])(Call *call) = {
    [OP_EMBEDDING_FORWARD] = embedding_forward,
    [OP_EMBEDDING_BACKWARD] = embedding_backward,
    [OP_RMSNORM_FORWARD] = rmsnorm_forward,
    [OP_RMSNORM_BACKWARD] = rmsnorm_backward,
    [OP_MATMUL] = matmul,
    [OP_ROPE_FORWARD] = rope,
    [OP_ROPE_BACKWARD] = rope,
    [OP_QKV_FORWARD] = launch_qkv_forward,
    [OP_QKV_BACKWARD] = launch_qkv_backward,
    [OP_ATTENTION_FORWARD] = launch_attention_forward,
    [OP_ATTENTION_BACKWARD] = launch_attention_backward,
    [OP_ATTENTION_DECODE] = launch_attention_decode,
    [OP_SWIGLU_FORWARD] = swiglu_forward,
    [OP_SWIGLU_BACKWARD] = swiglu_backward,
    [OP_RELU2_FORWARD] = launch_relu2_forward,
    [OP_RELU2_BACKWARD] = launch_relu2_backward,
    [OP_GATE_FORWARD] = launch_gate_forward,
    [OP_GATE_BACKWARD] = launch_gate_backward,
    [OP_SMEAR_FORWARD] = launch_smear_forward,
    [OP_SMEAR_BACKWARD] = launch_smear_backward,
    [OP_BLEND_FORWARD] = launch_blend_forward,
    [OP_BLEND_BACKWARD] = launch_blend_backward,
    [OP_CROSS_ENTROPY] = cross_entropy,
    [OP_SOFT_CAP] = soft_cap,
    [OP_LOSS_SUM] = loss_sum,
    [OP_GRADIENT_NORM] = launch_gradient_norm,
    [OP_ADAMW] = launch_adamw,
    [OP_MUON_BEGIN] = launch_muon_begin,
    [OP_MUON_POLYNOMIAL] = launch_muon_polynomial,
    [OP_MUON_END] = launch_muon_end,
    [OP_COPY_START] = launch_copy_start,
    [OP_COPY_WAIT] = launch_copy_wait,
};

bool launch_operation(Call *call) {
    return launchers[call->operation->kind](call);
}
