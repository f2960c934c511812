/* Which examples CORE takes, and which it shows before each: drawn as by CPython's random.Random, so that
 * they are those of the reference. */
#ifndef HEARTH_EVAL_CORE_SAMPLING_H
#define HEARTH_EVAL_CORE_SAMPLING_H

#include <stddef.h>

enum { CORE_SHOTS_MAX = 64 };

/* The order of a task's examples: Random(1337).shuffle(list(range(count))). */
void core_shuffle(size_t *order, size_t count);

/* The examples shown before example `index` of `count`:
 * Random(1234 + index).sample([i for i in range(count) if i != index], shots).
 * shots is at most CORE_SHOTS_MAX and below count. */
void core_shots(size_t index, size_t count, size_t shots, size_t *chosen);

#endif
