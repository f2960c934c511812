/* Optimizers write the update section of a program. */
#ifndef HEARTH_OPTIM_OPTIMIZER_H
#define HEARTH_OPTIM_OPTIMIZER_H

#include "step/program.h"

typedef struct AdamwSettings {
    float beta1, beta2, epsilon;
    float weight_decay; /* of matrices; vectors are not decayed */
    float clip_norm;    /* of the whole gradient; 0 = no clipping */
    StateFormat state;
} AdamwSettings;

/* The gradient's norm, AdamW with decoupled decay (arXiv 1711.05101) on every weight, and gradients set
 * back to zero. Adds the moment buffers. */
void adamw_write_update(Program *program, const AdamwSettings *settings);

const char *state_format_name(StateFormat format);

#endif
