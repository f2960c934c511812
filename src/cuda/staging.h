/* Copies between host and device, through slots of pinned memory. What a slot carries to an input of
 * the micro-batch travels on a stream of its own, beside the step; all else in the order of the step. */
#ifndef HEARTH_CUDA_STAGING_H
#define HEARTH_CUDA_STAGING_H

#include "cuda/beside.h"
#include "cuda/gpu.h"

typedef struct StagingSlot {
    uint8_t *pinned;
    CUdeviceptr device;
    CUevent arrived; /* the copy to `device` is done */
    CUevent taken;   /* the step is done with the slot */
    bool used;       /* `taken` has been recorded */
} StagingSlot;

typedef struct Staging {
    const Gpu *gpu;
    CUstream step, copies;
    void *pinned;
    int64_t bytes; /* of a slot */
    StagingSlot slots[STAGING_SLOTS];
    int next;
} Staging;

/* device: STAGING_SLOTS slots of `bytes` bytes. `step` is the stream that operations run on. */
bool staging_open(Staging *staging, const Gpu *gpu, CUstream step, CUdeviceptr device,
                  int64_t bytes, Error *error);
void staging_close(Staging *staging);

/* Queues a copy of at most a slot's bytes to an input that the step reads: it is under way while
 * earlier work runs. */
bool staging_input(Staging *staging, CUdeviceptr to, const void *data, int64_t bytes, Error *error);

/* Queues a copy of any size. */
bool staging_upload(Staging *staging, CUdeviceptr to, const void *data, int64_t bytes,
                    Error *error);

/* Waits for the step and copies. */
bool staging_download(Staging *staging, CUdeviceptr from, void *data, int64_t bytes, Error *error);

#endif
