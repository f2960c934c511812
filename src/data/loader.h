/* The loader: batches of token rows, ready before they are asked for.
 *
 * The order of data is a pure function of (seed, epoch, sample index): a sample is one row of T tokens
 * with the targets that follow them; rows are packed in a fixed order and visited in a shuffled one,
 * another in every epoch, each row once an epoch. The position is the absolute number of the next
 * sample over all ranks, so that stopping, resuming, the micro-batch and the number of ranks do not
 * move the data. Without shuffling a batch never crosses the end of an epoch: its last rows are padding
 * then, so that a pass that stops at loader_samples_per_epoch() counts every target once. */
#ifndef HEARTH_DATA_LOADER_H
#define HEARTH_DATA_LOADER_H

#include "data/dataset.h"

/* A token's target is the token after it in the row of T + 1: that of a document's last token is the
 * separator of the next, which is how a model learns to stop. */
typedef enum Packing {
    PACKING_STREAM,    /* documents end to end, cut every T tokens; nothing is lost */
    PACKING_DOCUMENTS, /* a row starts with a document; documents longer than a row go on in the next
                          row, short ones share a row; the rest of a row is padding (target -1) */
    PACKING_BESTFIT, /* nanochat's: repeatedly the longest of 1000 to 1127 documents that fits into the
                        row of T + 1; when none does, the shortest is cropped to fill it, its rest lost */
} Packing;

enum { PACKINGS = PACKING_BESTFIT + 1 };

const char *packing_name(Packing packing);
/* False when no packing has that name. */
bool packing_find(const char *name, Packing *packing);

typedef struct LoaderSettings {
    Split split;
    Packing packing;
    int64_t sequence_length; /* T */
    int64_t micro_batch;     /* B: rows of a batch */
    bool shuffle;            /* false: in order, as evaluation reads */
    uint64_t seed;
    int64_t rank, ranks; /* of every `ranks` samples this process reads one; 0 of 1 when alone */
} LoaderSettings;

typedef struct Batch {
    const int32_t *tokens;         /* [B,T] */
    const int32_t *targets;        /* [B,T]; -1 = not counted in the loss */
    const int32_t *document_start; /* [B,T]: where in its row the token's document begins */
    int64_t target_count;          /* targets that are not -1 */
    int64_t sample;                /* absolute number of the first row; the next is `ranks` on */
    int64_t epoch;                 /* of the first row */
} Batch;

typedef struct Loader Loader;

/* Starts a background thread that keeps a ring of `ring` ready batches. `sample` is where to start: 0,
 * or loader_position() of an earlier loader with the same data, packing, T and seed. The dataset must
 * outlive it. A split shorter than a row is an error when shuffled; in order it is one padded row. */
Loader *loader_open(const Dataset *dataset, const LoaderSettings *settings, int64_t sample,
                    int ring, Error *error);
void loader_free(Loader *loader);

/* The next batch, valid until the following call; waits if it is not ready and adds the seconds waited
 * to *waited (may be NULL). */
bool loader_next(Loader *loader, Batch *batch, double *waited, Error *error);

/* Absolute number of the first sample that loader_next() has not returned. */
int64_t loader_position(const Loader *loader);
/* Samples (rows of T) in one epoch. */
int64_t loader_samples_per_epoch(const Loader *loader);
/* The share of the split's tokens that no row has: what best fit crops, 0 with the other packings. */
double loader_cropped_share(const Loader *loader);
/* Bytes that the loader holds for its ring and tables, for the memory table. */
size_t loader_memory(const Loader *loader);

#endif
