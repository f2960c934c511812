/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): what base/random.h
 * draws from, by itself for code that draws many numbers at once. */
#ifndef HEARTH_BASE_PHILOX_H
#define HEARTH_BASE_PHILOX_H

#include <stdint.h>

#include "base/host_device.h"

typedef struct PhiloxWords {
    uint32_t word[4];
} PhiloxWords;

/* Block number `block` of a stream: key = seed; counter = (block, stream), low words first. */
HOST_DEVICE PhiloxWords philox(uint64_t seed, uint64_t stream, uint64_t block) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    PhiloxWords words = {{c0, c1, c2, c3}};
    return words;
}

#endif
