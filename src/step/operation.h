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
    OP_RMSNORM_FORWARD,    /* out, rstd; x, weight or none */
    OP_RMSNORM_BACKWARD, /* dx, dweight += or none; dout, dresidual or none, x, rstd, weight or none */
    OP_MATMUL,           /* out; a, b, addend or none */
    OP_ROPE_FORWARD,     /* out; x, cos_sin, branch_start or none */
    OP_ROPE_BACKWARD,    /* dx; dout, cos_sin */
    OP_QKV_FORWARD, /* out, rstd; projected, cos_sin, branch_start or none, tokens, values, gates (the
                       last three or none) */
    OP_QKV_BACKWARD, /* dprojected, dvalues, dgates (the last two or none); dqkv, qkv, rstd, cos_sin,
                        tokens, values, gates (the last three or none) */
    OP_ATTENTION_FORWARD,  /* out, lse; qkv, document_start or none */
    OP_ATTENTION_BACKWARD, /* dqkv; dout, out, lse, qkv, document_start or none */
    OP_ATTENTION_DECODE,   /* out, key_cache, value_cache; qkv, branch_start or none */
    OP_SWIGLU_FORWARD,     /* out; gate_up */
    OP_SWIGLU_BACKWARD,    /* dgate_up; dout, gate_up */
    OP_RELU2_FORWARD,      /* out; x */
    OP_RELU2_BACKWARD,     /* dx; dout, x */
    OP_GATE_FORWARD,       /* gates; x, weight */
    OP_GATE_BACKWARD,      /* dx +=, dweight +=; dgates, gates, x, weight */
    OP_SMEAR_FORWARD,      /* out; x, gates, lambda, previous or none */
    OP_SMEAR_BACKWARD,     /* dx, dgates, dlambda +=; dout, x, gates, lambda */
    OP_BLEND_FORWARD,      /* out; x, y, a or none, b or none */
    OP_BLEND_BACKWARD, /* dx, dy, da += or none, db +=; dout, x, y, a or none, b, dy_addend or none */
    OP_CROSS_ENTROPY, /* losses, logits -> dlogits, best or none; targets */
    OP_SOFT_CAP,      /* out; x */
    OP_LOSS_SUM,      /* sum[1] += in fp64; losses */
    OP_GRADIENT_NORM, /* norm[1]; gradients */
    OP_ADAMW, /* master, working or none, moment1, moment2, absmax1, absmax2, gradient -> 0; norm */
    OP_MUON_BEGIN,      /* update, momentum, gradient -> 0; norm */
    OP_MUON_POLYNOMIAL, /* out; a1, a2 */
    OP_MUON_END,        /* master, working or none, variance; update, norm */
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
    MATMUL_WEIGHT_GRADIENT,
    MATMUL_UPDATE /* in the optimizer */
} MatmulRole;

/* out[M,N] = A[M,K] · B[K,N] + addend, row-major and packed. A transposed operand is stored [K,M] or
 * [N,K]. The addend has the shape and type of out and may be out itself (accumulation). */
typedef struct MatmulShape {
    int64_t M, N, K;
    bool transpose_a, transpose_b;
    MatmulRole role;
} MatmulShape;

/* What attention sees: query t of a row sees keys s with document_start[t] <= s <= t and
 * t - s <= window.
 *
 * Decode has new tokens behind `position` cached ones. Without branch_start they go on from there. With it
 * they are branches, each of which goes on from there: that of token t begins at place branch_start[t]. A
 * token's position is then position + t - branch_start[t], and it sees the cache before `position` and its
 * own branch, within the window. Keys and values of the first branch (branch_start 0) are put into the
 * caches at their positions. */
typedef struct AttentionShape {
    int64_t B, T, H, KV, D; /* H is a multiple of KV; D is even */
    int64_t window;         /* T or more (or < 0): no window */
    float scale;            /* of the scores, usually 1/sqrt(D) */
} AttentionShape;

/* Queries, keys and values as attention takes them: query and key heads turned by minus their position's
 * angle (RoPE), normalised by RMS without weights and scaled; to the value heads gates[n,kv] times the row
 * of the token in the table `values` [V,KV*D] is added, if there is one. */
typedef struct QkvShape {
    int64_t N, T, H, KV, D;
    float eps, scale;
} QkvShape;

/* gates[n,g] = factor * sigmoid(x[n,0..channels-1] . weight[g,channels]), fp32. x has C columns. */
typedef struct GateShape {
    int64_t N, C, gates, channels;
    float factor;
} GateShape;

/* out[n] = x[n] + lambda * gates[n] * x[n - 1], and x[n] alone where n begins a row of T; with `previous`
 * that is used in the place of x[n - 1] everywhere. lambda is fp32. */
typedef struct SmearShape {
    int64_t N, T, C;
} SmearShape;

/* out = a x + sign b y, with fp32 scalars a and b; those that are none are 1. Backward: dx = a dout,
 * dy = sign b dout + dy_addend (which may be dy itself), da += sum(dout x), db += sign sum(dout y). */
typedef struct BlendShape {
    int64_t n;
    float sign;
} BlendShape;

/* Logits of `stride` columns, of which the first V are of the vocabulary; with a cap above 0 (40 at
 * most: exponentials are taken against the cap itself) they count as cap * tanh(logit / cap). The
 * gradient of the columns beyond V is 0. best[n]: the first of the largest. */
typedef struct CrossEntropyShape {
    int64_t N, V, stride;
    float scale, cap;
    bool gradient;
} CrossEntropyShape;

typedef struct AdamwShape {
    int64_t n;
    StateFormat format;
    float rate;                                           /* times the step's learning rate */
    float beta1, beta2, epsilon, weight_decay, clip_norm; /* clip_norm 0: no clipping */
    uint32_t tensor; /* index of the weight, keys its rounding */
} AdamwShape;

/* Muon's update of one matrix [rows,columns] (what each operation computes is said in cpu/kernels.h). The
 * update in the making is of the storage type and never tall: [columns,rows] when rows > columns. */
typedef struct MuonShape {
    int64_t rows, columns;
    Dtype momentum;     /* fp32, or bf16 with stochastic rounding */
    float rate;         /* times the step's learning rate */
    float weight_decay; /* times the step's weight_decay */
    float beta2, clip_norm;
    uint32_t tensor; /* the weights' number and the parameter's index, keys its rounding */
} MuonShape;

/* out[m,m] = a I + b A + c A A, of A and A A. */
typedef struct PolynomialShape {
    int64_t m;
    float a, b, c;
} PolynomialShape;

/* Between two spaces, beside the step. The id is that of no other copy that is under way. */
typedef struct CopyShape {
    int64_t n;
    int id; /* 0 .. COPIES_AT_ONCE - 1 */
} CopyShape;

enum { COPIES_AT_ONCE = 64 };

enum { OPERATION_OUTPUTS = 7, OPERATION_INPUTS = 7 };

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
        QkvShape qkv;
        GateShape gate;
        SmearShape smear;
        BlendShape blend;
        CrossEntropyShape cross_entropy;
        struct {
            int64_t n;
            float cap;
        } soft_cap; /* out = cap * tanh(x / cap), fp32 */
        AdamwShape adamw;
        MuonShape muon;
        PolynomialShape polynomial;
        CopyShape copy;
        struct {
            int64_t n;
        } elements; /* relu2, loss sum, gradient norm */
    };
} Operation;

/* Values that change from step to step, read when an operation runs. */
typedef struct StepScalars {
    float learning_rate;
    float
        gradient_scale; /* batch tokens / counted targets: makes the gradient a mean over targets */
    float momentum, weight_decay; /* Muon's momentum, and what its weight decay is multiplied by */
    int64_t step;                 /* 1 for the first optimizer update */
    uint64_t seed;
    int64_t position; /* of the first new token in the key/value caches */
} StepScalars;

#endif
