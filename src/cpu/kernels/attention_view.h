/* What a block of queries sees: the keys lowest[i] .. its own position, for the query in lane i.
 * Both the forward and the backward take from here which blocks of keys to visit, so that the cost
 * is that of the window. */
#ifndef HEARTH_CPU_KERNELS_ATTENTION_VIEW_H
#define HEARTH_CPU_KERNELS_ATTENTION_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu/kernels.h"

enum { BLOCK = 64 }; /* queries, and keys, in a block */

typedef struct View {
    int32_t lowest[BLOCK];
    int64_t start;           /* position of the first query */
    int64_t from, full_from; /* the first key seen by any query, and by all of them */
} View;

static inline int64_t blocks_of(int64_t T) {
    return (T + BLOCK - 1) / BLOCK;
}

/* document_start: of this row of the batch, or NULL. Lanes behind T see what the first query sees.
 */
static inline View attention_view(AttentionShape shape, const int32_t *document_start,
                                  int64_t block) {
    View view = {.start = block * BLOCK, .from = INT64_MAX};
    for (int i = 0; i < BLOCK; i++) {
        int64_t t = view.start + i < shape.T ? view.start + i : view.start;
        int64_t lowest = document_start ? document_start[t] : 0;
        if (shape.window >= 0 && lowest < t - shape.window) lowest = t - shape.window;
        if (lowest < 0) lowest = 0;
        if (lowest > t) lowest = t; /* a query always sees itself */
        view.lowest[i] = (int32_t)lowest;
        if (lowest < view.from) view.from = lowest;
        if (lowest > view.full_from) view.full_from = lowest;
    }
    return view;
}

static inline bool view_sees(const View *view, int64_t key_block) {
    return key_block * BLOCK <= view->start && (key_block + 1) * BLOCK > view->from;
}

/* Every query sees every key of the block: no mask is needed. */
static inline bool view_sees_all(const View *view, int64_t key_block) {
    return key_block * BLOCK < view->start && key_block * BLOCK >= view->full_from;
}

#endif
