/* Recompute: activations dropped after the forward pass and made again in the backward pass. */
#ifndef HEARTH_STEP_RECOMPUTE_H
#define HEARTH_STEP_RECOMPUTE_H

#include "step/program.h"

/* What is dropped; each level drops what those before it drop. Models tag buffers with these. */
typedef enum RecomputeLevel {
    RECOMPUTE_NONE,
    RECOMPUTE_CHEAP, /* outputs of norms and activation functions */
    RECOMPUTE_MLP,   /* and the wide inputs of the MLP's activation function */
    RECOMPUTE_LAYER, /* and everything else but the input of each layer */
    RECOMPUTE_LEVELS
} RecomputeLevel;

const char *recompute_name(RecomputeLevel level);

/* Rewrites the micro-batch section (which must be the first): before the backward operation that first
 * reads a dropped buffer, a clone of its producer is put in, and clones of what that needs. The clones
 * run the same operations on the same values, so results do not change in any bit. */
bool recompute_apply(Program *program, RecomputeLevel level, Error *error);

#endif
