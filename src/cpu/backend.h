/* The CPU backend: oneDNN's matmuls and the kernels of cpu/kernels.h. */
#ifndef HEARTH_CPU_BACKEND_H
#define HEARTH_CPU_BACKEND_H

#include "step/backend.h"

extern const Backend backend_cpu;

#endif
