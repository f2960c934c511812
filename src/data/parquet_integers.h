/* How Parquet packs integers: varints, the hybrid of runs and bit packing, and packed differences. All
 * readers stay within [at, end) and say false where it ends too early or makes no sense. */
#ifndef HEARTH_DATA_PARQUET_INTEGERS_H
#define HEARTH_DATA_PARQUET_INTEGERS_H

#include <stdbool.h>
#include <stdint.h>

/* Seven bits a byte, lowest first (unsigned LEB128); moves *at past it. */
bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value);

static inline int64_t zigzag_decode(uint64_t value) {
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* The RLE encoding: runs of one value, and groups of eight values packed into `width` bits each. */
typedef struct HybridReader {
    const uint8_t *at, *end;    /* what no run has been taken from yet */
    unsigned width;             /* bits in a value, 0 .. 32 */
    uint64_t repeated, packed;  /* values left in the run; one of the two is 0 */
    uint32_t value;             /* that is repeated */
    const uint8_t *run;         /* packed values ... */
    uint64_t run_size, run_bit; /* ... its bytes, and the bit the next value begins at */
} HybridReader;

bool hybrid_next(HybridReader *reader, uint32_t *value);

/* DELTA_BINARY_PACKED of int32: blocks of differences, each in miniblocks of a bit width of their own. */
typedef struct DeltaReader {
    const uint8_t *at, *end;
    uint64_t miniblocks, miniblock_values; /* in a block, in a miniblock */
    uint64_t left;                         /* values still to come */
    bool started;                          /* the first value, which is in the header, is given */
    uint64_t value, smallest_delta;        /* modulo 2^64 */
    const uint8_t *widths;                 /* of this block's miniblocks */
    uint64_t next_miniblock;               /* of this block */
    const uint8_t *packed;                 /* the current miniblock ... */
    uint64_t in_miniblock;                 /* ... and how many of its values are left */
} DeltaReader;

bool delta_begin(DeltaReader *reader, const uint8_t *at, const uint8_t *end);
bool delta_next(DeltaReader *reader, int32_t *value);
/* Where the bytes of a reader that has just begun end, or NULL. */
const uint8_t *delta_end(DeltaReader reader);

#endif
