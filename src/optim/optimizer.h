/* Optimizers write the update section of a program. */
#ifndef HEARTH_OPTIM_OPTIMIZER_H
#define HEARTH_OPTIM_OPTIMIZER_H

#include "step/program.h"

/* How the weights of one role are updated. */
typedef struct OptimizerGroup {
    bool muon;                   /* else AdamW; for matrices only */
    float rate;                  /* times the step's learning rate */
    float beta1, beta2, epsilon; /* Muon: beta2 of the variance; its momentum is a step's scalar */
    float weight_decay;          /* decoupled; Muon: times the step's weight_decay */
} OptimizerGroup;

typedef struct OptimizerSettings {
    OptimizerGroup groups[WEIGHT_ROLES];
    float clip_norm; /* of the whole gradient; 0 = no clipping */
    StateFormat state;
} OptimizerSettings;

typedef struct AdamwSettings {
    float beta1, beta2, epsilon;
    float weight_decay; /* of matrices; vectors are not decayed */
    float clip_norm;
} AdamwSettings;

/* AdamW with the same numbers for every weight; its states in fp32 until that is changed. */
OptimizerSettings optimizer_adamw(const AdamwSettings *settings);

/* The gradient's norm; AdamW with decoupled decay (arXiv 1711.05101), or Muon for each parameter, on every
 * weight; and gradients set back to zero. Adds the state buffers and sets the offsets into them. */
void optimizer_write_update(Program *program, const OptimizerSettings *settings);

const char *state_format_name(StateFormat format);

#endif
