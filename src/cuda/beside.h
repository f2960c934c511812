/* What the backend asks of the driver beside the arena: staging for copies. Needs no CUDA header, as
 * `hearth plan` counts it where there is no GPU. */
#ifndef HEARTH_CUDA_BESIDE_H
#define HEARTH_CUDA_BESIDE_H

#include "base/integer.h"
#include "step/program.h"

/* Slots that copies between host and device go through; inputs of two micro-batches (tokens, targets,
 * documents) have one each, so that the next is on its way while this one is worked on. */
enum { STAGING_SLOTS = 6, STAGING_LEAST = 1 << 20, STAGING_ALIGNMENT = 256 };

/* Bytes of a slot: an input of a micro-batch, or a piece of what is larger. */
static inline int64_t staging_bytes(const Program *program) {
    int64_t input = divide_up(program->B * program->T * 4, STAGING_ALIGNMENT) * STAGING_ALIGNMENT;
    return input > STAGING_LEAST ? input : STAGING_LEAST;
}

/* Of all slots: pinned on the host, and as much on the device. */
static inline int64_t staging_slots_bytes(const Program *program) {
    return STAGING_SLOTS * staging_bytes(program);
}

/* Device memory beside the arena: the slots' far ends, and the scalars behind them. */
static inline int64_t beside_device_bytes(const Program *program) {
    return staging_slots_bytes(program) + STAGING_ALIGNMENT;
}

/* Backend.beside */
static inline void cuda_beside(const Program *program, int64_t *device_bytes,
                               int64_t *pinned_bytes) {
    *device_bytes = beside_device_bytes(program);
    *pinned_bytes = staging_slots_bytes(program);
}

#endif
