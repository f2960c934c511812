#include "base/random.h"

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

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
