#include "cuda/workspace.h"

enum { FLOAT = 4, DOUBLE = 8 };

static int64_t rmsnorm_backward(const Operation *operation, Error *error) {
    if (operation->inputs[4].buffer < 0) return 0; /* no weight, whose gradient is summed */
    enum { WIDTH_MOST = 24 << 10 }; /* a row of fp32 sums in the least shared memory of all chips */
    const int64_t N = operation->norm.N, C = operation->norm.C;
    if (C > WIDTH_MOST) {
        fail(error,
             "the GPU's RMSNorm has no kernel for a width of %lld, only up to %d: make the model "
             "narrower, or use --device cpu",
             (long long)C, WIDTH_MOST);
        return -1;
    }
    return cuda_rmsnorm_blocks(N) * C * FLOAT;
}

int64_t cuda_workspace(const Program *program, const Operation *operation, Error *error) {
    switch (operation->kind) {
    case OP_MATMUL:
        return CUDA_MATMUL_WORKSPACE;
    case OP_ATTENTION_FORWARD:
    case OP_ATTENTION_BACKWARD:
    case OP_ATTENTION_DECODE:
        return cuda_attention_workspace(program, operation, error);
    case OP_RMSNORM_BACKWARD:
        return rmsnorm_backward(operation, error);
    case OP_GATE_BACKWARD:
        return operation->gate.gates * operation->gate.channels *
               cuda_gate_blocks(operation->gate.N) * DOUBLE;
    case OP_SMEAR_BACKWARD:
        return cuda_smear_blocks(operation->smear.N) * DOUBLE;
    case OP_BLEND_BACKWARD:
        return 2 * cuda_blend_blocks(operation->blend.n) * DOUBLE;
    case OP_GRADIENT_NORM:
        return CUDA_SUM_BLOCKS * DOUBLE;
    case OP_MUON_BEGIN: /* sums of squares: of rows, and of what has a variance */
        return operation->muon.rows * FLOAT;
    case OP_MUON_END:
        return larger(operation->muon.rows, operation->muon.columns) * FLOAT;
    default:
        return 0;
    }
}
