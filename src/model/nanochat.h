/* nanochat's architecture (docs/design/nanochat.md). */
#ifndef HEARTH_MODEL_NANOCHAT_H
#define HEARTH_MODEL_NANOCHAT_H

#include "model/model.h"

extern const Model model_nanochat;

#endif
