/* A program at work on a GPU; shared by the files of this room. */
#ifndef HEARTH_CUDA_EXECUTOR_H
#define HEARTH_CUDA_EXECUTOR_H

#include "cuda/gpu.h"
#include "cuda/matmul.h"
#include "cuda/staging.h"
#include "cuda/stopwatch.h"
#include "step/backend.h"

struct Executor {
    const Program *program;
    const Gpu *gpu;
    CUstream step; /* operations run here, in their order */
    CUdeviceptr arena, beside, scalars;
    uint8_t *host_arena; /* pinned; NULL: nothing is offloaded */
    CUstream copies;     /* offload's, beside the step */
    CUevent copied[COPIES_AT_ONCE];
    Staging staging;
    Matmuls matmuls;
    CUgraphExec graphs[SECTIONS]; /* of the sections that the program has */
    Error failure;                /* of an upload; reported by the next run or download */
    bool failed;
    double *profile; /* seconds by operation, or NULL */
    Stopwatch watch; /* of the step, for the profile */
};

/* One operation with its operands resolved, ready to be queued. */
typedef struct Call {
    Executor *executor;
    const Operation *operation;
    CUdeviceptr out[OPERATION_OUTPUTS], in[OPERATION_INPUTS]; /* 0 for none */
    CUdeviceptr workspace;                                    /* 0 for none */
    CUdeviceptr scalars;                                      /* a CudaScalars */
    Dtype storage;
    CUstream stream;
    Error *error;
} Call;

typedef struct Grid {
    int64_t x, y, z;
} Grid;

/* Queues the kernel of that name for the program's storage type ("rope" is rope_bf16 or rope_fp32) with
 * `threads` threads a block and `shared` bytes of dynamic shared memory. arguments: addresses of the
 * kernel's parameters, whose exact types they must have. */
bool launch(Call *call, const char *kernel, Grid grid, unsigned threads, int64_t shared,
            void **arguments);

/* As launch(), for a kernel that exists once, whatever the storage type. */
bool launch_only(Call *call, const char *kernel, Grid grid, unsigned threads, int64_t shared,
                 void **arguments);

/* Threads of a block that walks over rows of `length` numbers of the storage type, 16 bytes a thread at a
 * time: whole warps, at most `most`. */
unsigned row_threads(const Call *call, int64_t length, int64_t most);

/* Queues an operation: operations.c has the table from kinds to the functions below. */
bool launch_operation(Call *call);

bool launch_attention_forward(Call *call);
bool launch_attention_backward(Call *call);
bool launch_attention_decode(Call *call);
bool launch_qkv_forward(Call *call);
bool launch_qkv_backward(Call *call);
bool launch_relu2_forward(Call *call);
bool launch_relu2_backward(Call *call);
bool launch_gate_forward(Call *call);
bool launch_gate_backward(Call *call);
bool launch_smear_forward(Call *call);
bool launch_smear_backward(Call *call);
bool launch_blend_forward(Call *call);
bool launch_blend_backward(Call *call);
bool launch_gradient_norm(Call *call);
bool launch_adamw(Call *call);
bool launch_muon_begin(Call *call);
bool launch_muon_polynomial(Call *call);
bool launch_muon_end(Call *call);
bool launch_copy_start(Call *call);
bool launch_copy_wait(Call *call);

#endif
