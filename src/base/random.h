/* Counter-based random numbers (base/philox.h). A number is a pure function of (seed, stream, index), so it
 * does not depend on threads, order or backend. */
#ifndef HEARTH_BASE_RANDOM_H
#define HEARTH_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/philox.h"

/* What the numbers are drawn for; the high half of a stream, so that uses never overlap. */
enum {
    RANDOM_INIT = 1,    /* parameter initialisation: low half = parameter index */
    RANDOM_SHUFFLE = 2, /* data order: low half = epoch */
    RANDOM_SAMPLE = 3,  /* text generation */
    RANDOM_ROUND = 4,   /* stochastic rounding: low half = tensor */
};

HOST_DEVICE uint64_t random_stream(uint32_t purpose, uint32_t part) {
    return ((uint64_t)purpose << 32) | part;
}

/* Block number `block` of a stream: its words 4 * block .. 4 * block + 3. */
static inline void random_block(uint64_t seed, uint64_t stream, uint64_t block, uint32_t out[4]) {
    const PhiloxWords words = philox(seed, stream, block);
    for (int i = 0; i < 4; i++) out[i] = words.word[i];
}

/* The 32-bit word number `index` of a stream: key = seed; counter = (index / 4, stream). */
uint32_t random_u32(uint64_t seed, uint64_t stream, uint64_t index);

/* Uniform in [0, 1), 24 bits: (word >> 8) * 2^-24, exact in fp32. */
float random_uniform(uint64_t seed, uint64_t stream, uint64_t index);

/* Uniform in [0, bound), without modulo bias worth naming (64-bit multiply-high). */
uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

/* Standard normals number first .. first + count - 1 by Box-Muller, two from each pair of words: normal n
 * is made from words n and n ^ 1. In arithmetic of its own (normal.c), so that every platform draws the
 * same bits. */
void random_normals(uint64_t seed, uint64_t stream, uint64_t first, size_t count, float *out);
float random_normal(uint64_t seed, uint64_t stream, uint64_t index);

#endif
