/* Random words for the stochastic rounding of states, a block of them at a time. */
#ifndef HEARTH_CPU_KERNELS_WORDS_H
#define HEARTH_CPU_KERNELS_WORDS_H

#include "base/random.h"
#include "numeric/state.h"

/* words[i] is that of element `start` + i in a step, for a start that is a multiple of STATE_BLOCK: blocks
 * across the lanes. 2^40 elements before the next step's words. */
static inline void rounding_words(uint32_t words[STATE_BLOCK], uint64_t seed, uint32_t tensor,
                                  int64_t step, int64_t start) {
    const uint64_t stream = random_stream(RANDOM_ROUND, tensor),
                   index = ((uint64_t)step << 40) + (uint64_t)start;
#pragma omp simd
    for (uint32_t block = 0; block < STATE_BLOCK / 4; block++) {
        const PhiloxWords four = philox(seed, stream, index / 4 + block);
        words[4 * block] = four.word[0], words[4 * block + 1] = four.word[1];
        words[4 * block + 2] = four.word[2], words[4 * block + 3] = four.word[3];
    }
}

#endif
