#include "text/piece_cache.h"

enum { PLACES = 1 << 12 }; /* 256 KiB a thread: within the L2 cache */

static _Thread_local CachedPiece places[PLACES] __attribute__((aligned(64)));

CachedPiece *piece_cache_place(uint64_t hash) {
    return &places[(hash >> 20) % PLACES]; /* the low bits choose the place in the token index */
}
