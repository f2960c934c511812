/* What a block of queries sees: the keys lowest[i] .. highest[i], for the query in lane i. The attention
 * kernels take from here which blocks of keys to visit, and which parts of a block at an edge, so that the
 * cost is that of the window. */
#ifndef HEARTH_CPU_KERNELS_ATTENTION_VIEW_H
#define HEARTH_CPU_KERNELS_ATTENTION_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/integer.h"
#include "cpu/kernels.h"

enum { BLOCK = 64, HALF = BLOCK / 2 }; /* queries, and keys, in a block */

typedef struct View {
    int32_t lowest[BLOCK], highest[BLOCK];
    int64_t from, to;                 /* no query sees a key outside from .. to - 1 */
    int64_t full_from, full_to;       /* every query sees the keys full_from .. full_to - 1 */
    int64_t half_from[2], half_to[2]; /* as from and to, of the queries in half a block */
} View;

/* The part of a block of scores to compute: keys are its rows, queries its columns. */
typedef struct Part {
    int key, keys, query, queries;
} Part;

/* The limits, from lowest and highest of the first `queries` lanes. */
static inline void view_limits(View *view, int64_t queries) {
    view->from = view->half_from[0] = view->half_from[1] = view->full_to = INT64_MAX;
    view->to = view->half_to[0] = view->half_to[1] = view->full_from = 0;
    for (int64_t i = 0; i < queries; i++) {
        const int64_t from = view->lowest[i], to = view->highest[i] + (int64_t)1;
        view->from = smaller(view->from, from), view->to = larger(view->to, to);
        view->full_from = larger(view->full_from, from), view->full_to = smaller(view->full_to, to);
        int64_t *half_from = &view->half_from[i / HALF], *half_to = &view->half_to[i / HALF];
        *half_from = smaller(*half_from, from), *half_to = larger(*half_to, to);
    }
}

/* Of attention in a row of T tokens, along which neither lowest nor highest ever decreases.
 * document_start: of this row of the batch, or NULL. Lanes behind T see what the first query sees. */
static inline View attention_view(AttentionShape shape, const int32_t *document_start,
                                  int64_t block) {
    View view;
    const int64_t start = block * BLOCK;
    for (int i = 0; i < BLOCK; i++) {
        const int64_t t = start + i < shape.T ? start + i : start;
        int64_t lowest = document_start ? document_start[t] : 0;
        if (shape.window >= 0 && lowest < t - shape.window) lowest = t - shape.window;
        if (lowest < 0) lowest = 0;
        if (lowest > t) lowest = t; /* a query always sees itself */
        view.lowest[i] = (int32_t)lowest;
        view.highest[i] = (int32_t)t;
    }
    view_limits(&view, smaller(BLOCK, shape.T - start));
    return view;
}

/* The blocks of queries that see a block of keys follow each other, from that block on. */
static inline int64_t blocks_of(int64_t T) {
    return divide_up(T, BLOCK);
}

static inline bool view_sees(const View *view, int64_t key_block) {
    return key_block * BLOCK < view->to && (key_block + 1) * BLOCK > view->from;
}

/* Every query sees every key of the block: no mask is needed. */
static inline bool view_sees_all(const View *view, int64_t key_block) {
    return (key_block + 1) * BLOCK <= view->full_to && key_block * BLOCK >= view->full_from;
}

/* Whether any query of a half sees any of HALF keys from `key` on. */
static inline bool half_sees(const View *view, int half, int64_t key) {
    return key < view->half_to[half] && key + HALF > view->half_from[half];
}

/* The parts of a block that are visible, in halves: one or two, none when nothing is. */
static inline int view_parts(const View *view, int64_t key_block, Part parts[2]) {
    int count = 0;
    for (int key = 0; key < BLOCK; key += HALF) {
        const bool low = half_sees(view, 0, key_block * BLOCK + key);
        const bool high = half_sees(view, 1, key_block * BLOCK + key);
        const Part part = {key, HALF, low ? 0 : HALF, low && high ? BLOCK : HALF};
        if (!low && !high) continue;
        if (count && parts[0].query == part.query && parts[0].queries == part.queries)
            parts[0].keys = BLOCK;
        else
            parts[count++] = part;
    }
    return count;
}

#endif
