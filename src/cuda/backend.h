/* The CUDA backend: runs a program on an NVIDIA GPU. In a build without the CUDA toolkit it plans, and
 * open() says what is missing. */
#ifndef HEARTH_CUDA_BACKEND_H
#define HEARTH_CUDA_BACKEND_H

#include "step/backend.h"

extern const Backend backend_cuda;

/* Whether a program can run on a GPU here; if not, the error says why and what to do. */
bool cuda_present(Error *why_not);

#endif
