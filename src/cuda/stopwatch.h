/* Times what a stream does between two events. */
#ifndef HEARTH_CUDA_STOPWATCH_H
#define HEARTH_CUDA_STOPWATCH_H

#include "cuda/gpu.h"

typedef struct Stopwatch {
    const Gpu *gpu;
    CUstream stream;
    CUevent began, ended;
} Stopwatch;

bool stopwatch_open(Stopwatch *watch, const Gpu *gpu, CUstream stream, Error *error);
void stopwatch_close(Stopwatch *watch);

bool stopwatch_start(Stopwatch *watch, Error *error);

/* Waits for what was queued since the start; an error when that failed. */
bool stopwatch_stop(Stopwatch *watch, double *seconds, Error *error);

#endif
