/* The table from operation kind to what runs it. */
#include <math.h>
#include <string.h>

#include "cpu/executor.h"

/* One operation with its operands resolved. */
typedef struct Call {
    const CpuKernels *kernels;
    const Operation *operation;
    const StepScalars *scalars;
    void *out[OPERATION_OUTPUTS];
    void *in[OPERATION_INPUTS];
    void *workspace;
    Dtype out_dtype; /* of the first output */
} Call;

static void embedding_forward(Call *call) {
    call->kernels->embedding_forward(call->out[0], call->in[0], call->in[1],
                                     call->operation->embedding.N, call->operation->embedding.C);
}

static void embedding_backward(Call *call) {
    call->kernels->embedding_backward(call->out[0], call->in[0], call->in[1],
                                      call->operation->embedding.N, call->operation->embedding.C);
}

static void rmsnorm_forward(Call *call) {
    call->kernels->rmsnorm_forward(call->out[0], call->out[1], call->in[0], call->in[1],
                                   call->operation->norm.N, call->operation->norm.C,
                                   call->operation->norm.eps);
}

static void rmsnorm_backward(Call *call) {
    call->kernels->rmsnorm_backward(call->out[0], call->out[1], call->in[0], call->in[1],
                                    call->in[2], call->in[3], call->in[4], call->workspace,
                                    call->operation->norm.N, call->operation->norm.C);
}

static void matmul(Call *call) {
    if (call->operation->matmul.transpose_a)
        call->kernels->weight_gradient(call->out[0], call->in[0], call->in[1], call->workspace,
                                       call->operation->matmul);
    else
        call->kernels->matmul(call->out[0], call->in[0], call->in[1], call->in[2], call->workspace,
                              call->operation->matmul, call->out_dtype == DTYPE_F32);
}

static void rope(Call *call) {
    const Operation *operation = call->operation;
    call->kernels->rope(call->out[0], call->in[0], call->in[1], call->in[2], operation->rope.N,
                        operation->rope.T, operation->rope.heads, operation->rope.rotated,
                        operation->rope.D, call->scalars->position,
                        operation->kind == OP_ROPE_BACKWARD);
}

static void qkv_forward(Call *call) {
    call->kernels->qkv_forward(call->out[0], call->out[1], call->in[0], call->in[1], call->in[2],
                               call->in[3], call->in[4], call->in[5], call->scalars->position,
                               call->operation->qkv);
}

static void qkv_backward(Call *call) {
    call->kernels->qkv_backward(call->out[0], call->out[1], call->out[2], call->in[0], call->in[1],
                                call->in[2], call->in[3], call->in[4], call->in[5], call->in[6],
                                call->operation->qkv);
}

static void attention_forward(Call *call) {
    call->kernels->attention_forward(call->out[0], call->out[1], call->in[0], call->in[1],
                                     call->workspace, call->operation->attention);
}

static void attention_backward(Call *call) {
    call->kernels->attention_backward(call->out[0], call->in[0], call->in[1], call->in[2],
                                      call->in[3], call->in[4], call->workspace,
                                      call->operation->attention);
}

static void attention_decode(Call *call) {
    call->kernels->attention_decode(call->out[0], call->in[0], call->in[1], call->out[1],
                                    call->out[2], call->scalars->position,
                                    call->operation->attention);
}

static void swiglu_forward(Call *call) {
    call->kernels->swiglu_forward(call->out[0], call->in[0], call->operation->swiglu.N,
                                  call->operation->swiglu.F);
}

static void swiglu_backward(Call *call) {
    call->kernels->swiglu_backward(call->out[0], call->in[0], call->in[1],
                                   call->operation->swiglu.N, call->operation->swiglu.F);
}

static void relu2_forward(Call *call) {
    call->kernels->relu2_forward(call->out[0], call->in[0], call->operation->elements.n);
}

static void relu2_backward(Call *call) {
    call->kernels->relu2_backward(call->out[0], call->in[0], call->in[1],
                                  call->operation->elements.n);
}

static void gate_forward(Call *call) {
    call->kernels->gate_forward(call->out[0], call->in[0], call->in[1], call->operation->gate);
}

static void gate_backward(Call *call) {
    call->kernels->gate_backward(call->out[0], call->out[1], call->in[0], call->in[1], call->in[2],
                                 call->in[3], call->workspace, call->operation->gate);
}

static void smear_forward(Call *call) {
    call->kernels->smear_forward(call->out[0], call->in[0], call->in[1], call->in[2], call->in[3],
                                 call->operation->smear);
}

static void smear_backward(Call *call) {
    call->kernels->smear_backward(call->out[0], call->out[1], call->out[2], call->in[0],
                                  call->in[1], call->in[2], call->in[3], call->workspace,
                                  call->operation->smear);
}

static void blend_forward(Call *call) {
    call->kernels->blend_forward(call->out[0], call->in[0], call->in[1], call->in[2], call->in[3],
                                 call->operation->blend);
}

static void blend_backward(Call *call) {
    call->kernels->blend_backward(call->out[0], call->out[1], call->out[2], call->out[3],
                                  call->in[0], call->in[1], call->in[2], call->in[3], call->in[4],
                                  call->in[5], call->workspace, call->operation->blend);
}

static void cross_entropy(Call *call) {
    call->kernels->cross_entropy(call->out[0], call->out[1], call->out[2], call->in[0],
                                 call->workspace, call->operation->cross_entropy);
}

static void soft_cap(Call *call) {
    call->kernels->soft_cap(call->out[0], call->in[0], call->operation->soft_cap.n,
                            call->operation->soft_cap.cap);
}

/* One by one in double: the order is part of what a run logs. */
static void loss_sum(Call *call) {
    const float *losses = call->in[0];
    double *sum = call->out[0];
    for (int64_t i = 0; i < call->operation->elements.n; i++) *sum += (double)losses[i];
}

/* Of the mean gradient over the counted targets of the whole optimizer step. */
static void gradient_norm(Call *call) {
    double squared = call->kernels->squared_norm(call->in[0], call->operation->elements.n);
    *(float *)call->out[0] = (float)(sqrt(squared) * (double)call->scalars->gradient_scale);
}

/* What a gradient of this norm is multiplied by. */
static float gradient_scale(const StepScalars *scalars, float norm, float clip_norm) {
    bool clip = clip_norm > 0 && norm > clip_norm;
    return clip ? scalars->gradient_scale * (clip_norm / (norm + 1e-6f)) : scalars->gradient_scale;
}

/* A gradient that is not finite changes nothing: it is dropped, the weights and states stay, and the norm
 * tells. */
static void adamw(Call *call) {
    const AdamwShape *shape = &call->operation->adamw;
    float norm = *(const float *)call->in[0];
    if (!isfinite(norm)) {
        memset(call->out[6], 0, (size_t)shape->n * sizeof(float));
        return;
    }
    AdamwArguments arguments = {.master = call->out[0],
                                .working = call->out[1],
                                .moment1 = call->out[2],
                                .moment2 = call->out[3],
                                .absmax1 = call->out[4],
                                .absmax2 = call->out[5],
                                .gradient = call->out[6],
                                .n = shape->n,
                                .format = shape->format,
                                .learning_rate = call->scalars->learning_rate * shape->rate,
                                .beta1 = shape->beta1,
                                .beta2 = shape->beta2,
                                .epsilon = shape->epsilon,
                                .weight_decay = shape->weight_decay,
                                .gradient_scale =
                                    gradient_scale(call->scalars, norm, shape->clip_norm),
                                .step = call->scalars->step,
                                .seed = call->scalars->seed,
                                .tensor = shape->tensor};
    call->kernels->adamw(&arguments);
}

/* An update of zeros, then, for the matmuls that follow. */
static void muon_begin(Call *call) {
    const MuonShape *shape = &call->operation->muon;
    float norm = *(const float *)call->in[0];
    if (!isfinite(norm)) {
        int64_t n = shape->rows * shape->columns;
        memset(call->out[0], 0, (size_t)(n * dtype_size(call->out_dtype)));
        memset(call->out[2], 0, (size_t)n * sizeof(float));
        return;
    }
    MuonArguments arguments = {.update = call->out[0],
                               .momentum = call->out[1],
                               .gradient = call->out[2],
                               .workspace = call->workspace,
                               .shape = *shape,
                               .momentum_factor = call->scalars->momentum,
                               .gradient_scale =
                                   gradient_scale(call->scalars, norm, shape->clip_norm),
                               .step = call->scalars->step,
                               .seed = call->scalars->seed};
    call->kernels->muon_begin(&arguments);
}

static void muon_polynomial(Call *call) {
    call->kernels->muon_polynomial(call->out[0], call->in[0], call->in[1],
                                   call->operation->polynomial);
}

static void muon_end(Call *call) {
    const MuonShape *shape = &call->operation->muon;
    if (!isfinite(*(const float *)call->in[1])) return;
    MuonArguments arguments = {.master = call->out[0],
                               .working = call->out[1],
                               .variance = call->out[2],
                               .update = call->in[0],
                               .workspace = call->workspace,
                               .shape = *shape,
                               .rate = call->scalars->learning_rate * shape->rate,
                               .weight_decay = call->scalars->weight_decay * shape->weight_decay};
    call->kernels->muon_end(&arguments);
}

/* There is nothing to run it beside. */
static void copy_start(Call *call) {
    memcpy(call->out[0], call->in[0],
           (size_t)(call->operation->copy.n * dtype_size(call->out_dtype)));
}

static void copy_wait(Call *call) {
    (void)call;
}

static void (*const runners[OPERATION_KINDS])(Call *call) = {
    [OP_EMBEDDING_FORWARD] = embedding_forward,
    [OP_EMBEDDING_BACKWARD] = embedding_backward,
    [OP_RMSNORM_FORWARD] = rmsnorm_forward,
    [OP_RMSNORM_BACKWARD] = rmsnorm_backward,
    [OP_MATMUL] = matmul,
    [OP_ROPE_FORWARD] = rope,
    [OP_ROPE_BACKWARD] = rope,
    [OP_QKV_FORWARD] = qkv_forward,
    [OP_QKV_BACKWARD] = qkv_backward,
    [OP_ATTENTION_FORWARD] = attention_forward,
    [OP_ATTENTION_BACKWARD] = attention_backward,
    [OP_ATTENTION_DECODE] = attention_decode,
    [OP_SWIGLU_FORWARD] = swiglu_forward,
    [OP_SWIGLU_BACKWARD] = swiglu_backward,
    [OP_RELU2_FORWARD] = relu2_forward,
    [OP_RELU2_BACKWARD] = relu2_backward,
    [OP_GATE_FORWARD] = gate_forward,
    [OP_GATE_BACKWARD] = gate_backward,
    [OP_SMEAR_FORWARD] = smear_forward,
    [OP_SMEAR_BACKWARD] = smear_backward,
    [OP_BLEND_FORWARD] = blend_forward,
    [OP_BLEND_BACKWARD] = blend_backward,
    [OP_CROSS_ENTROPY] = cross_entropy,
    [OP_SOFT_CAP] = soft_cap,
    [OP_LOSS_SUM] = loss_sum,
    [OP_GRADIENT_NORM] = gradient_norm,
    [OP_ADAMW] = adamw,
    [OP_MUON_BEGIN] = muon_begin,
    [OP_MUON_POLYNOMIAL] = muon_polynomial,
    [OP_MUON_END] = muon_end,
    [OP_COPY_START] = copy_start,
    [OP_COPY_WAIT] = copy_wait,
};

void run_operation(Executor *executor, int index, const StepScalars *scalars) {
    const Program *program = executor->program;
    const Operation *operation = &program->operations[index];
    Call call = {.kernels = executor->kernels,
                 .operation = operation,
                 .scalars = scalars,
                 .workspace = operand_address(executor, operation->workspace),
                 .out_dtype = program->buffers[operation->outputs[0].buffer].dtype};
    for (int i = 0; i < OPERATION_OUTPUTS; i++)
        call.out[i] = operand_address(executor, operation->outputs[i]);
    for (int i = 0; i < OPERATION_INPUTS; i++)
        call.in[i] = operand_address(executor, operation->inputs[i]);
    runners[operation->kind](&call);
}
