/* The update of one parameter by Muon, as nanochat has it (docs/design/muon.md). */
#ifndef HEARTH_OPTIM_MUON_H
#define HEARTH_OPTIM_MUON_H

#include "optim/optimizer.h"

/* The update in the making, never tall: [m,n] with m <= n; one set of buffers for the largest of each. */
typedef struct MuonBuffers {
    int update, next;               /* [m,n] */
    int square, fourth, multiplier; /* [m,m]: X Xᵀ, its square, and the polynomial of both */
} MuonBuffers;

/* Adds the buffers and sets the parameters' offsets into those of the state, if Muon has any weight. */
MuonBuffers muon_make_buffers(Program *program, const OptimizerSettings *settings);

void muon_write(Program *program, int parameter, const OptimizerSettings *settings,
                const MuonBuffers *buffers);

#endif
