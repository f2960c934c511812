#include "eval/core_sampling.h"

#include <stdbool.h>
#include <stdint.h>

/* MT19937: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998); seeded with their
 * init_by_array() of 2002. */
enum { STATE_WORDS = 624, SHIFT_WORDS = 397 };

typedef struct Twister {
    uint32_t words[STATE_WORDS];
    int next; /* STATE_WORDS: all are used up */
} Twister;

/* As Random(seed), whose key is the one word. */
static Twister twister_start(uint32_t seed) {
    Twister twister = {.next = STATE_WORDS};
    uint32_t *word = twister.words;
    word[0] = 19650218;
    for (uint32_t i = 1; i < STATE_WORDS; i++)
        word[i] = 1812433253 * (word[i - 1] ^ word[i - 1] >> 30) + i;
    int at = 1;
    for (int i = 0; i < 2 * STATE_WORDS - 1; i++) {
        uint32_t before = word[at - 1] ^ word[at - 1] >> 30;
        word[at] = i < STATE_WORDS ? (word[at] ^ before * 1664525) + seed
                                   : (word[at] ^ before * 1566083941) - (uint32_t)at;
        if (++at < STATE_WORDS) continue;
        word[0] = word[STATE_WORDS - 1];
        at = 1;
    }
    word[0] = 0x80000000;
    return twister;
}

static void twist(Twister *twister) {
    uint32_t *word = twister->words;
    for (int i = 0; i < STATE_WORDS; i++) {
        uint32_t joined = (word[i] & 0x80000000) | (word[(i + 1) % STATE_WORDS] & 0x7fffffff);
        word[i] =
            word[(i + SHIFT_WORDS) % STATE_WORDS] ^ joined >> 1 ^ (joined & 1 ? 0x9908b0df : 0);
    }
    twister->next = 0;
}

static uint32_t next_word(Twister *twister) {
    if (twister->next == STATE_WORDS) twist(twister);
    uint32_t word = twister->words[twister->next++];
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680;
    word ^= word << 15 & 0xefc60000;
    return word ^ word >> 18;
}

/* Uniform below `bound` (1 .. 2^32 - 1): as many top bits as the bound has, until they are below it. */
static size_t draw_below(Twister *twister, size_t bound) {
    int bits = 64 - __builtin_clzll((unsigned long long)bound);
    size_t drawn;
    do drawn = next_word(twister) >> (32 - bits);
    while (drawn >= bound);
    return drawn;
}

void core_shuffle(size_t *order, size_t count) {
    Twister twister = twister_start(1337);
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t i = count; i-- > 1;) {
        size_t j = draw_below(&twister, i + 1), moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
}

/* Up to how many sample() draws from a list that shrinks; from more it draws again what it had. */
static size_t pool_limit(size_t shots) {
    size_t limit = 1;
    while (limit < 3 * shots) limit *= 4;
    return 21 + (shots > 5 ? limit : 0);
}

enum { POOL = 21 + 4 * 3 * CORE_SHOTS_MAX }; /* pool_limit() is at most this */

static void sample_from_pool(Twister *twister, size_t count, size_t shots, size_t *chosen) {
    size_t pool[POOL];
    for (size_t i = 0; i < count; i++) pool[i] = i;
    for (size_t i = 0; i < shots; i++) {
        size_t j = draw_below(twister, count - i);
        chosen[i] = pool[j];
        pool[j] = pool[count - i - 1];
    }
}

static bool is_among(size_t value, const size_t *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i] == value) return true;
    return false;
}

static void sample_again(Twister *twister, size_t count, size_t shots, size_t *chosen) {
    for (size_t i = 0; i < shots; i++) {
        do chosen[i] = draw_below(twister, count);
        while (is_among(chosen[i], chosen, i));
    }
}

void core_shots(size_t index, size_t count, size_t shots, size_t *chosen) {
    if (!shots) return;
    Twister twister = twister_start(1234 + (uint32_t)index);
    size_t others = count - 1;
    if (others <= pool_limit(shots))
        sample_from_pool(&twister, others, shots, chosen);
    else
        sample_again(&twister, others, shots, chosen);
    for (size_t i = 0; i < shots; i++) chosen[i] += chosen[i] >= index;
}
