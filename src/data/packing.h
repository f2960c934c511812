/* Packing: which stretches of a split's tokens make up each row. */
#ifndef HEARTH_DATA_PACKING_H
#define HEARTH_DATA_PACKING_H

#include "data/loader.h"

/* Tokens start..start+count-1 of the split. */
typedef struct Segment {
    int64_t start, count;
} Segment;

typedef struct Packer Packer;

Packer *packer_open(const Dataset *dataset, Split split, Packing packing, int64_t sequence_length,
                    Error *error);
void packer_free(Packer *packer);

int64_t packer_rows(const Packer *packer);
/* Tokens of the split that are in no row. */
int64_t packer_cropped(const Packer *packer);
size_t packer_memory(const Packer *packer);

/* Fills segments[0..n-1] (room for sequence_length + 1) with those of a row, and returns n. They stand in
 * the row in this order, at most sequence_length + 1 tokens: each has the next as its target, the last is
 * a target only, and what the row lacks is padding. */
int64_t packer_row(const Packer *packer, int64_t row, Segment *segments);

#endif
