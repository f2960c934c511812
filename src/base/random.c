#include "base/random.h"

uint32_t random_u32(uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t words[4];
    random_block(seed, stream, index / 4, words);
    return words[index % 4];
}

float random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    return (float)(random_u32(seed, stream, index) >> 8) * 0x1p-24f;
}

uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound) {
    uint32_t words[4];
    random_block(seed, stream, index, words);
    uint64_t word = ((uint64_t)words[1] << 32) | words[0];
    return (uint64_t)(((unsigned __int128)word * bound) >> 64);
}
