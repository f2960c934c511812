/* What each thread has lately merged: from a short piece to its ids. Text repeats itself, and a
 * look-up in a small table is several times faster than merging anew. */
#ifndef HEARTH_TEXT_PIECE_CACHE_H
#define HEARTH_TEXT_PIECE_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum { CACHED_BYTES = 26, CACHED_IDS = 8 };

typedef struct CachedPiece {
    uint32_t owner; /* the tokenizer's serial number; 0: empty */
    uint8_t size, count;
    uint8_t bytes[CACHED_BYTES];
    uint32_t ids[CACHED_IDS];
} CachedPiece;

_Static_assert(sizeof(CachedPiece) == 64, "a cache line");

/* This thread's place for a piece of at most CACHED_BYTES with this hash, whatever it holds now. */
CachedPiece *piece_cache_place(uint64_t hash);

#endif
