/* The CPU backend: runs a program with the kernels of cpu/kernels.h. */
#ifndef HEARTH_CPU_BACKEND_H
#define HEARTH_CPU_BACKEND_H

#include "step/backend.h"

extern const Backend backend_cpu;

#endif
