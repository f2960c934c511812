/* A fast hash of short runs of bytes, for tables in memory only (it depends on the byte order). */
#ifndef HEARTH_TEXT_HASH_H
#define HEARTH_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_mix(uint64_t value) {
    value ^= value >> 32;
    value *= 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio */
    return value ^ value >> 29;
}

/* At most eight bytes as a number, zero-padded. */
static inline uint64_t load_head(const uint8_t *bytes, size_t size) {
    uint64_t head = 0;
    if (size >= sizeof head) {
        memcpy(&head, bytes, sizeof head);
        return head;
    }
    uint32_t low = 0, high = 0; /* two overlapping halves rather than a loop */
    if (size >= 4) {
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + size - 4, 4);
        return low | (uint64_t)high << (8 * (size - 4));
    }
    for (size_t i = 0; i < size; i++) head |= (uint64_t)bytes[i] << (8 * i);
    return head;
}

static inline uint64_t hash_bytes(const uint8_t *bytes, size_t size) {
    uint64_t hash = hash_mix(load_head(bytes, size) + size * 0xD6E8FEB86659FD93u);
    while (size > 8) {
        size_t step = size - 8 < 8 ? size - 8 : 8;
        bytes += step;
        size -= step;
        hash = hash_mix(hash ^ load_head(bytes, 8));
    }
    return hash;
}

#endif
