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

typedef struct CpuKernels {
    const char *isa; /* "portable", "avx2", "avx512", "avx512bf16", "neon" */
    Dtype storage;

    /* out[N,C] = weight[tokens[N],C] */
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

    /* rstd[N] = 1/sqrt(mean(x^2) + eps); out[N,C] = x * rstd * weight[C]  (arXiv 1910.07467) */
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
     * position of token n is offset + n % T. inverse: by the negative angle, which is the backward.
     * out may be x. */
    void (*rope)(void *out, const void *x, const float *cos_sin, int64_t N, int64_t T,
                 int64_t heads, int64_t rotated, int64_t D, int64_t offset, bool inverse);

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
    /* Writes the keys and values of T new tokens to rows position.. of the caches [capacity,KV*D], then
     * attends from each to all cached before it. shape.B = 1. */
    void (*attention_decode)(void *out, const void *qkv, void *key_cache, void *value_cache,
                             int64_t position, AttentionShape shape);

    /* gate_up[N,2F]: gate then up. out[N,F] = silu(gate) * up  (arXiv 2002.05202) */
    void (*swiglu_forward)(void *out, const void *gate_up, int64_t N, int64_t F);
    void (*swiglu_backward)(void *dgate_up, const void *dout, const void *gate_up, int64_t N,
                            int64_t F);

    /* losses[n] = logsumexp(logits) - logits[target], in nats; 0 where target is -1. When `gradient`,
     * logits[n,V] are replaced by (softmax - onehot) * scale, 0 where target is -1. */
    void (*cross_entropy)(float *losses, void *logits, const int32_t *targets, int64_t n, int64_t V,
                          float scale, bool gradient);

    /* Sum of squares of x[n], in double over fixed blocks in a fixed order. */
    double (*squared_norm)(const float *x, int64_t n);
    void (*adamw)(const AdamwArguments *arguments);

    /* Runs dot-product instructions of this storage type on every thread for about `seconds` and returns
     * the FLOP/s reached: the processor's peak, for MFU and predictions. */
    double (*measure_peak)(double seconds);
} CpuKernels;

/* The best table that this processor runs, or the one that HEARTH_ISA names (portable, avx2, avx512,
 * avx512bf16, neon); NULL with an error when it names one that cannot run here. storage: fp32 or bf16. */
const CpuKernels *cpu_kernels(Dtype storage, Error *error);

#endif
