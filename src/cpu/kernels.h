/* The CPU kernels: one table for each instruction set and storage type.
 *
 * Outputs first, then inputs, then sizes. N = B*T tokens, C = width, F = ffn width, H query heads,
 * KV key/value heads, D = head dim, V = vocabulary. Activations, their gradients and working weights
 * are of the table's storage type (fp32 or bf16: `void *`), row-major; all arithmetic is fp32; weight
 * gradients are fp32 and added to what is there. No kernel allocates. Every kernel is parallel inside
 * and gives the same bits whatever the number of threads. The portable table is the definition; the
 * others equal it within rounding. */
#ifndef HEARTH_CPU_KERNELS_H
#define HEARTH_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "numeric/dtype.h"
#include "numeric/state.h"
#include "step/operation.h"

typedef struct AdamwArguments {
    float *master;            /* [n] fp32 */
    void *working;            /* [n] storage type; NULL or == master in fp32 recipes */
    float *gradient;          /* [n] fp32; set to zero for the next step */
    void *moment1, *moment2;  /* [n] in `format` */
    float *absmax1, *absmax2; /* [ceil(n/256)], 8-bit states only */
    int64_t n;
    StateFormat format;
    float learning_rate, beta1, beta2, epsilon, weight_decay;
    float gradient_scale; /* multiplies the gradient: clipping and the mean over tokens */
    int64_t step;         /* 1 for the first update: bias correction */
    uint64_t seed;        /* stochastic rounding of bf16 states: keyed by seed, step, tensor */
    uint32_t tensor;
} AdamwArguments;

typedef struct MuonArguments {
    float *master;   /* [rows,columns] fp32; end */
    void *working;   /* storage type; NULL or == master in fp32 recipes; end */
    float *gradient; /* fp32; begin */
    void *update;    /* storage type, [rows,columns], or [columns,rows] when rows > columns */
    void *momentum;  /* in shape.momentum; begin */
    float *variance; /* [rows] if rows >= columns, else [columns]; end */
    void *workspace;
    MuonShape shape;
    float momentum_factor; /* mu */
    float gradient_scale;  /* multiplies the gradient: clipping and the mean over tokens */
    float rate, weight_decay;
    int64_t step;
    uint64_t seed;
} MuonArguments;

typedef struct CpuKernels {
    const char *isa; /* "portable", "avx2", "avx512", "avx512bf16", "neon" */
    Dtype storage;

    /* out[N,C] = weight[tokens[N],C]; zeros where a token is -1 */
    void (*embedding_forward)(void *out, const int32_t *tokens, const void *weight, int64_t N,
                              int64_t C);
    /* dweight[V,C] += the rows of dout[N,C] at their tokens */
    void (*embedding_backward)(float *dweight, const void *dout, const int32_t *tokens, int64_t N,
                               int64_t C);

    /* out[M,N] = a[M,K] · b[K,N] + addend (NULL: 0); transpose_b: b is stored [N,K]. out and addend are
     * of the storage type, or fp32 with out_f32; out may be addend. */
    void (*matmul)(void *out, const void *a, const void *b, const void *addend, void *workspace,
                   MatmulShape shape, bool out_f32);
    /* dweight[M,N] += a · b[K,N] with a stored [K,M] (transpose_a): the sum over K tokens. */
    void (*weight_gradient)(float *dweight, const void *a, const void *b, void *workspace,
                            MatmulShape shape);
    /* bytes, for as many threads as thread_count() says now */
    size_t (*matmul_workspace)(MatmulShape shape);
    size_t (*weight_gradient_workspace)(MatmulShape shape);

    /* rstd[N] = 1/sqrt(mean(x^2) + eps); out[N,C] = x * rstd * weight[C]  (arXiv 1910.07467). Without a
     * weight (NULL) it is 1, and dweight is NULL too. */
    void (*rmsnorm_forward)(void *out, float *rstd, const void *x, const void *weight, int64_t N,
                            int64_t C, float eps);
    /* dx[N,C] = dresidual[N,C] (NULL: 0) + the norm's input gradient; dx may be dresidual.
     * dweight[C] += its weight gradient. workspace: rmsnorm_workspace(N, C) bytes. */
    void (*rmsnorm_backward)(void *dx, float *dweight, const void *dout, const void *dresidual,
                             const void *x, const float *rstd, const void *weight, void *workspace,
                             int64_t N, int64_t C);
    size_t (*rmsnorm_workspace)(int64_t N, int64_t C);

    /* Rotates the first `rotated` heads of each row of `heads` heads of D, and copies the others:
     * halves x1, x2 become x1*cos - x2*sin, x2*cos + x1*sin with cos_sin[position][D/2][2]. The
     * position of token n is offset + n % T, less branch_start[n] where that is given. inverse: by the
     * negative angle, which is the backward. out may be x. D is at most 256. */
    void (*rope)(void *out, const void *x, const float *cos_sin, const int32_t *branch_start,
                 int64_t N, int64_t T, int64_t heads, int64_t rotated, int64_t D, int64_t offset,
                 bool inverse);

    /* projected[N,(H+2*KV)*D] to what attention takes, of the same shape. A query or key head z is turned
     * by minus the angle of its position (as rope, inverse) and becomes scale * z * r with
     * r = 1/sqrt(mean(z^2) + eps), kept in rstd[N,H+KV]. To value head kv is added
     * gates[n,kv] * values[tokens[n],kv*D..]; tokens, values [V,KV*D] and gates [N,KV] may be NULL.
     * branch_start[N] may be NULL; position is that of the first token of a row of T. D is at most
     * 256. out may be projected, and dprojected dqkv. */
    void (*qkv_forward)(void *out, float *rstd, const void *projected, const float *cos_sin,
                        const int32_t *branch_start, const int32_t *tokens, const void *values,
                        const float *gates, int64_t position, QkvShape shape);
    /* dprojected, all of it written; dvalues[N,KV*D] = gates * dv, the gradient of the rows of the table;
     * dgates[N,KV] = dv . values[tokens[n]]. The norm's gradient is taken from its output qkv and rstd. */
    void (*qkv_backward)(void *dprojected, void *dvalues, float *dgates, const void *dqkv,
                         const void *qkv, const float *rstd, const float *cos_sin,
                         const int32_t *tokens, const void *values, const float *gates,
                         QkvShape shape);

    /* Attention in blocks with a running softmax (arXiv 2205.14135); T x T is never held.
     * qkv[N,(H+2*KV)*D]: H query heads, KV key heads, KV value heads. out[N,H*D]; lse[B,H,T] = log of
     * the sum of exponentials. document_start[N] may be NULL. D is at most 256. */
    void (*attention_forward)(void *out, float *lse, const void *qkv, const int32_t *document_start,
                              void *workspace, AttentionShape shape);
    /* dqkv[N,(H+2*KV)*D], all of it written. */
    void (*attention_backward)(void *dqkv, const void *dout, const void *out, const float *lse,
                               const void *qkv, const int32_t *document_start, void *workspace,
                               AttentionShape shape);
    /* bytes, the larger of the two, for as many threads as thread_count() says now */
    size_t (*attention_workspace)(AttentionShape shape);
    /* T new tokens behind `position` cached ones, as said at AttentionShape: the caches are
     * [capacity,KV*D]; branch_start[T] may be NULL. shape.B = 1. */
    void (*attention_decode)(void *out, const void *qkv, const int32_t *branch_start,
                             void *key_cache, void *value_cache, int64_t position,
                             AttentionShape shape);

    /* gate_up[N,2F]: gate then up. out[N,F] = silu(gate) * up  (arXiv 2002.05202) */
    void (*swiglu_forward)(void *out, const void *gate_up, int64_t N, int64_t F);
    void (*swiglu_backward)(void *dgate_up, const void *dout, const void *gate_up, int64_t N,
                            int64_t F);

    /* out = max(x, 0)^2 and dx = 2 max(x, 0) dout, of n elements  (arXiv 2109.08668) */
    void (*relu2_forward)(void *out, const void *x, int64_t n);
    void (*relu2_backward)(void *dx, const void *dout, const void *x, int64_t n);

    /* What they compute is said at GateShape, SmearShape and BlendShape. The gate adds its gradient to the
     * first `channels` columns of dx[N,C] and to dweight[gates,channels]. workspace: gate_workspace(),
     * smear_workspace(), blend_workspace() bytes, for the sums over tokens in a fixed order. */
    void (*gate_forward)(float *gates, const void *x, const void *weight, GateShape shape);
    void (*gate_backward)(void *dx, float *dweight, const float *dgates, const float *gates,
                          const void *x, const void *weight, void *workspace, GateShape shape);
    size_t (*gate_workspace)(GateShape shape);
    void (*smear_forward)(void *out, const void *x, const float *gates, const float *lambda,
                          const void *previous, SmearShape shape);
    void (*smear_backward)(void *dx, float *dgates, float *dlambda, const void *dout, const void *x,
                           const float *gates, const float *lambda, void *workspace,
                           SmearShape shape);
    size_t (*smear_workspace)(SmearShape shape);
    void (*blend_forward)(void *out, const void *x, const void *y, const float *a, const float *b,
                          BlendShape shape);
    void (*blend_backward)(void *dx, void *dy, float *da, float *db, const void *dout,
                           const void *x, const void *y, const float *a, const float *b,
                           const void *dy_addend, void *workspace, BlendShape shape);
    size_t (*blend_workspace)(BlendShape shape);

    /* losses[n] = logsumexp(logits) - logits[target], in nats; 0 where target is -1. When `gradient`,
     * logits[n,stride] are replaced by (softmax - onehot) * scale (times the derivative of the cap), 0 where
     * target is -1. best (NULL: not wanted) is found for every row.
     * workspace: cross_entropy_workspace() bytes. */
    void (*cross_entropy)(float *losses, void *logits, int32_t *best, const int32_t *targets,
                          void *workspace, CrossEntropyShape shape);
    size_t (*cross_entropy_workspace)(CrossEntropyShape shape);
    /* out[n] = cap * tanh(x[n] / cap), fp32 */
    void (*soft_cap)(float *out, const float *x, int64_t n, float cap);

    /* Sum of squares of x[n], in double over fixed blocks in a fixed order. */
    double (*squared_norm)(const float *x, int64_t n);
    void (*adamw)(const AdamwArguments *arguments);

    /* Muon, as nanochat has it (docs/design/muon.md). Begin: with g the gradient times gradient_scale,
     * m = mu m + (1 - mu) g and X = (1 - mu) g + mu m; each row of X is scaled to the root mean square of
     * all rows' norms (a norm counts as 1e-6 at least; arXiv 2603.28254), then X divided by
     * 1.01 |X| + 1e-6, all in fp32, rounded once to the storage type and stored never tall. The gradient
     * is set to zero. */
    void (*muon_begin)(const MuonArguments *arguments);
    /* out = a I + b a1 + c a2, matrices [m,m] */
    void (*muon_polynomial)(void *out, const void *a1, const void *a2, PolynomialShape shape);
    /* End: X scaled to |X| = sqrt(min(rows, columns)) (arXiv 2602.21545); v = its mean square along each row
     * if rows >= columns, else along each column; variance = beta2 variance + (1 - beta2) v; X times
     * 1/sqrt(max(variance, 1e-10)), then scaled back to the norm it had (arXiv 2510.05491);
     * W -= rate X + rate decay W [X W >= 0]. */
    void (*muon_end)(const MuonArguments *arguments);
    size_t (*muon_workspace)(MuonShape shape); /* bytes, of either */

    /* Runs dot-product instructions of this storage type on every thread for about `seconds` and returns
     * the FLOP/s reached: the processor's peak, for MFU and predictions. */
    double (*measure_peak)(double seconds);
} CpuKernels;

/* The best table that this processor runs, or the one that HEARTH_ISA names (portable, avx2, avx512,
 * avx512bf16, neon); NULL with an error when it names one that cannot run here. storage: fp32 or bf16. */
const CpuKernels *cpu_kernels(Dtype storage, Error *error);

#endif
