/* One layer of nanochat, forward and backward. */
#ifndef HEARTH_MODEL_NANOCHAT_LAYER_H
#define HEARTH_MODEL_NANOCHAT_LAYER_H

#include "model/pass.h"

/* What one layer leaves for its backward (buffers). */
typedef struct LayerValues {
    int x, x0;   /* the layer's input, and the first layer's */
    int blended; /* r x + a x0 */
    int norm1, rstd1, gates, qkv, rstd_qkv, attention, lse;
    int middle, norm2, rstd2, fc, activated;
} LayerValues;

/* Writes the forward of a layer whose inputs are values->x and x0; returns its output. */
int nanochat_forward_layer(const Pass *pass, int layer, LayerValues *values);

/* Writes the backward of a layer, given the gradient of its output; returns that of x, and adds that of x0
 * to dx0, which the last layer, whose backward is the first, sets. */
int nanochat_backward_layer(const Pass *pass, int layer, const LayerValues *values, int dout,
                            int dx0);

#endif
