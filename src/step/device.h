/* What a device can do: the figures that predictions and MFU are made of. */
#ifndef HEARTH_STEP_DEVICE_H
#define HEARTH_STEP_DEVICE_H

#include "base/error.h"
#include "numeric/dtype.h"

typedef struct Device {
    char name[64];
    double matmul_flops;   /* dense peak of the storage type, fp32 accumulation, FLOP/s */
    double efficiency;     /* share of that peak that large matmuls reach */
    double vector_flops;   /* fp32 arithmetic outside matrix units, FLOP/s */
    double bandwidth;      /* of main memory, bytes/s */
    double host_bandwidth; /* of copies to and from host memory, bytes/s; 0: it is one memory */
    double packing;       /* tokens whose share of a matmul costs as much as preparing its weight */
    double launch;        /* fixed seconds an operation costs */
    int64_t memory;       /* bytes */
    int64_t driver_bytes; /* that its driver and libraries keep of it, roughly; 0: a processor */
} Device;

/* A guess at what contexts, kernels and libraries take of a GPU: docs/gpu.md. */
enum { DRIVER_BYTES = 640 << 20 };

/* The device of that name ("rtx-5090", "h200", …) for a storage type; an unknown name gets the list of
 * those there are. "this" is not here: a backend describes it. */
bool device_find(Device *device, const char *name, Dtype storage, Error *error);

/* The names, NULL-terminated. */
const char *const *device_names(void);

#endif
