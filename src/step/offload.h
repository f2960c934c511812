/* Offload: optimizer state and kept activations live in the host's memory, and are copied to and from the
 * device beside the step's own work. */
#ifndef HEARTH_STEP_OFFLOAD_H
#define HEARTH_STEP_OFFLOAD_H

#include "step/program.h"

/* What is offloaded: a set. */
typedef enum Offload {
    OFFLOAD_NONE,
    OFFLOAD_STATE,       /* the optimizer's moments */
    OFFLOAD_ACTIVATIONS, /* what layers keep from forward to backward, but for the last layer's */
    OFFLOAD_ALL,
    OFFLOADS
} Offload;

const char *offload_name(Offload offload);

/* Rewrites the program, after recompute_apply() and before layout_program(); its sections must stand in
 * the order of their kinds. Copies change no bit of the results, whenever they happen between their start
 * and where they are waited for.
 *
 * An activation becomes three buffers: one on the device that dies a layer after its last use in the
 * forward pass, one on the host, and one on the device that is born a layer before its first use in the
 * backward pass. A moment becomes one buffer on the host, and for each weight a slice on the device that
 * is fetched while the weight before is updated, and stored while the one behind is. */
bool offload_apply(Program *program, Offload offload, Error *error);

#endif
