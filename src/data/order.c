/* A Feistel network permutes 0..4^h - 1, the smallest such range that holds all rows. A result outside
 * the rows is permuted again until it is inside (cycle walking), which keeps it a bijection. More than
 * a quarter of the range is rows, so fewer than four tries do on average. */
#include "data/order.h"

#include "base/random.h"

enum { ROUNDS = 6 };

static uint64_t feistel(uint64_t seed, uint64_t stream, int half_bits, uint64_t value) {
    uint64_t mask = (1ull << half_bits) - 1;
    uint64_t left = value >> half_bits, right = value & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t mixed = left ^ (random_u32(seed, stream, round << 32 | right) & mask);
        left = right;
        right = mixed;
    }
    return left << half_bits | right;
}

int64_t order_row(uint64_t seed, int64_t epoch, int64_t count, int64_t index) {
    uint64_t stream = random_stream(RANDOM_SHUFFLE, (uint32_t)epoch);
    int half_bits = 1;
    while (half_bits < 31 && (uint64_t)count > 1ull << (2 * half_bits)) half_bits++;
    uint64_t value = (uint64_t)index;
    do value = feistel(seed, stream, half_bits, value);
    while (value >= (uint64_t)count);
    return (int64_t)value;
}
