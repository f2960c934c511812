/* A block of queries of one head, and what they have seen so far: a running softmax over blocks of keys
 * (arXiv 2205.14135). The output is kept transposed, [D][queries], until it is written. */
#ifndef HEARTH_CPU_KERNELS_ATTENTION_QUERIES_H
#define HEARTH_CPU_KERNELS_ATTENTION_QUERIES_H

#include "cpu/kernels/attention.h"

/* Each instance has its own copy of these functions. */
#define queries_start KERNEL(queries_start)
#define queries_see KERNEL(queries_see)
#define queries_write KERNEL(queries_write)

/* Weights are 2^((score - reference) * scale). */
typedef struct Softmax {
    _Alignas(64) float reference[BLOCK], sum[BLOCK], correction[BLOCK];
} Softmax;

typedef struct Queries {
    _Alignas(64) Unit q[BLOCK * MAX_D]; /* right factor summed over D: [D / UNIT][BLOCK] */
    _Alignas(64) float out[MAX_D][BLOCK];
    Softmax softmax;
    int64_t count, D;
    float scale; /* of scores in powers of two */
} Queries;

/* q[count][stride], at most BLOCK rows of D numbers */
void queries_start(Queries *queries, const Storage *q, int64_t stride, int64_t count,
                   AttentionShape shape);

/* Takes in what the view shows of a block of keys. keys: left factor summed over D, [BLOCK][D / UNIT];
 * values: left factor summed over keys, [D][BLOCK / UNIT]. */
void queries_see(Queries *queries, const Unit *keys, const Unit *values, const View *view,
                 int64_t key_block);

/* out[count][stride] */
void queries_write(const Queries *queries, Storage *out, int64_t stride);

#endif
