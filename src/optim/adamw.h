/* The update of one weight by AdamW. */
#ifndef HEARTH_OPTIM_ADAMW_H
#define HEARTH_OPTIM_ADAMW_H

#include "optim/optimizer.h"

/* Elements of state that the weight takes. */
int64_t adamw_state_elements(const Weight *weight);

/* Adds the buffers of `elements` elements of both moments, in the format of the settings. */
void adamw_make_states(Program *program, const OptimizerSettings *settings, int64_t elements);

void adamw_write(Program *program, int weight, const OptimizerSettings *settings);

#endif
