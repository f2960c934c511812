/* The order of an epoch: a permutation that is computed, not stored. */
#ifndef HEARTH_DATA_ORDER_H
#define HEARTH_DATA_ORDER_H

#include <stdint.h>

/* Which of `count` rows comes at place `index` (< count) of an epoch: a bijection for each seed and
 * epoch. */
int64_t order_row(uint64_t seed, int64_t epoch, int64_t count, int64_t index);

#endif
