/* The backends by the names that --device gives them. */
#ifndef HEARTH_TRAIN_BACKENDS_H
#define HEARTH_TRAIN_BACKENDS_H

#include "step/backend.h"

/* "cpu", "cuda", or "this": the GPU where one can be used, else the CPU. */
const Backend *backend_find(const char *name, Error *error);

#endif
