/* The operations a step is made of, and the buffers they work on. Shapes use the letters of
 * docs/design/conventions.md; what each kernel computes is said in cpu/kernels.h. */
#ifndef HEARTH_STEP_OPERATION_H
#define HEARTH_STEP_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "numeric/dtype.h"
#include "numeric/state.h"

typedef enum OperationKind {
    OP_EMBEDDING_FORWARD,  /* out; tokens, weight */
    OP_EMBEDDING_BACKWARD, /* dweight +=; dout, tokens */
    OP_RMSNORM_FORWARD,    /* out, rstd; x, weight */
    OP_RMSNORM_BACKWARD,   /* dx, dweight +=; dout, dresidual or none, x, rstd, weight */
    OP_MATMUL,             /* out; a, b, addend or none */
    OP_ROPE_FORWARD,       /* out; x, cos_sin */
    OP_ROPE_BACKWARD,      /* dx; dout, cos_sin */
    OP_ATTENTION_FORWARD,  /* out, lse; qkv, document_start or none */
    OP_ATTENTION_BACKWARD, /* dqkv; dout, out, lse, qkv, document_start or none */
    OP_ATTENTION_DECODE,   /* out, key_cache, value_cache; qkv */
    OP_SWIGLU_FORWARD,     /* out; gate_up */
    OP_SWIGLU_BACKWARD,    /* dgate_up; dout, gate_up */
    OP_CROSS_ENTROPY,      /* losses, logits -> dlogits; targets */
    OP_LOSS_SUM,           /* sum[1] += in fp64; losses */
    OP_GRADIENT_NORM,      /* norm[1]; gradients */
    OP_ADAMW, /* master, working or none, moment1, moment2, absmax1, absmax2, gradient -> 0; norm */
    OP_COPY_START, /* to; from: queues a copy that may happen at any time until its OP_COPY_WAIT */
    OP_COPY_WAIT,  /* the same operands; what comes behind finds the copy done */
    OPERATION_KINDS
} OperationKind;

const char *operation_name(OperationKind kind);

/* A place in a buffer: elements from its start. */
typedef struct Operand {
    int buffer; /* index in the program, or -1 for none */
    int64_t offset;
} Operand;

static const Operand operand_none = {-1, 0};

/* What a matrix product is for; a precision recipe chooses formats by it. */
typedef enum MatmulRole {
    MATMUL_FORWARD,
    MATMUL_INPUT_GRADIENT,
    MATMUL_WEIGHT_GRADIENT
} MatmulRole;

/* out[M,N] = A[M,K] · B[K,N] + addend, row-major and packed. A transposed operand is stored [K,M] or
 * [N,K]. The addend has the shape and type of out and may be out itself (accumulation). */
typedef struct MatmulShape {
    int64_t M, N, K;
    bool transpose_a, transpose_b;
    MatmulRole role;
} MatmulShape;

/* What attention sees: query t of a row sees keys s with document_start[t] <= s <= t and
 * t - s <= window. */
typedef struct AttentionShape {
    int64_t B, T, H, KV, D; /* H is a multiple of KV; D is even */
    int64_t window;         /* T or more (or < 0): no window */
    float scale;            /* of the scores, usually 1/sqrt(D) */
} AttentionShape;

typedef struct AdamwShape {
    int64_t n;
    StateFormat format;
    float beta1, beta2, epsilon, weight_decay, clip_norm; /* clip_norm 0: no clipping */
    uint32_t tensor; /* index of the weight, keys its rounding */
} AdamwShape;

/* Between two spaces, beside the step. The id is that of no other copy that is under way. */
typedef struct CopyShape {
    int64_t n;
    int id; /* 0 .. COPIES_AT_ONCE - 1 */
} CopyShape;

enum { COPIES_AT_ONCE = 64 };

enum { OPERATION_OUTPUTS = 7, OPERATION_INPUTS = 5 };

typedef struct Operation {
    OperationKind kind;
    int layer;       /* -1 outside the layers */
    bool recomputed; /* a clone that the planner put into the backward pass */
    Operand outputs[OPERATION_OUTPUTS];
    Operand inputs[OPERATION_INPUTS];
    Operand workspace; /* scratch memory the backend asked for; set by the planner */
    union {
        struct {
            int64_t N, C, V;
        } embedding;
        struct {
            int64_t N, C;
            float eps;
        } norm;
        MatmulShape matmul;
        struct {
            int64_t N, T, heads, rotated, D;
        } rope;
        AttentionShape attention;
        struct {
            int64_t N, F;
        } swiglu;
        struct {
            int64_t N, V;
            float scale;
            bool gradient;
        } cross_entropy;
        AdamwShape adamw;
        CopyShape copy;
        struct {
            int64_t n;
        } elements; /* loss sum, gradient norm */
    };
} Operation;

/* Values that change from step to step, read when an operation runs. */
typedef struct StepScalars {
    float learning_rate;
    float
        gradient_scale; /* batch tokens / counted targets: makes the gradient a mean over targets */
    int64_t step;       /* 1 for the first optimizer update */
    uint64_t seed;
    int64_t position; /* of the first new token in the key/value caches */
} StepScalars;

#endif
