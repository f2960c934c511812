/* What the GPU here is worth: on paper for plans, measured for predictions and MFU. */
#ifndef HEARTH_CUDA_DESCRIBE_H
#define HEARTH_CUDA_DESCRIBE_H

#include "step/device.h"

/* Backend.describe and Backend.measure. */
bool cuda_describe(Device *device, Dtype storage, Error *error);
bool cuda_measure(Device *device, Dtype storage, int64_t memory, Error *error);

#endif
