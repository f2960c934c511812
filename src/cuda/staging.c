#include "cuda/staging.h"

#include <string.h>

static bool check(const Staging *staging, CUresult result, Error *error) {
    return cuda_check(&staging->gpu->driver, result, error, "a copy to or from %s failed",
                      staging->gpu->name);
}

bool staging_open(Staging *staging, const Gpu *gpu, CUstream step, CUdeviceptr device,
                  int64_t bytes, Error *error) {
    const CudaDriver *driver = &gpu->driver;
    *staging = (Staging){.gpu = gpu, .step = step, .bytes = bytes};
    bool done =
        cuda_check(driver,
                   driver->allocate_host(&staging->pinned, STAGING_SLOTS * (size_t)bytes, 0), error,
                   "%lld bytes of pinned host memory cannot be had (see 'ulimit -l')",
                   (long long)(STAGING_SLOTS * bytes)) &&
        check(staging, driver->stream_create(&staging->copies, CU_STREAM_NON_BLOCKING), error);
    for (int i = 0; done && i < STAGING_SLOTS; i++) {
        StagingSlot *slot = &staging->slots[i];
        slot->pinned = (uint8_t *)staging->pinned + i * bytes;
        slot->device = device + (CUdeviceptr)(i * bytes);
        done =
            check(staging, driver->event_create(&slot->arrived, CU_EVENT_DISABLE_TIMING), error) &&
            check(staging, driver->event_create(&slot->taken, CU_EVENT_DISABLE_TIMING), error);
    }
    return done;
}

void staging_close(Staging *staging) {
    if (!staging->gpu) return;
    const CudaDriver *driver = &staging->gpu->driver;
    for (int i = 0; i < STAGING_SLOTS; i++) {
        if (staging->slots[i].arrived) driver->event_destroy(staging->slots[i].arrived);
        if (staging->slots[i].taken) driver->event_destroy(staging->slots[i].taken);
    }
    if (staging->copies) driver->stream_destroy(staging->copies);
    if (staging->pinned) driver->release_host(staging->pinned);
    *staging = (Staging){0};
}

/* The next slot, once the step is done with what it carried before. */
static StagingSlot *next_slot(Staging *staging, Error *error) {
    StagingSlot *slot = &staging->slots[staging->next];
    staging->next = (staging->next + 1) % STAGING_SLOTS;
    if (slot->used && !check(staging, staging->gpu->driver.event_wait(slot->taken), error))
        return NULL;
    return slot;
}

static bool mark_taken(Staging *staging, StagingSlot *slot, Error *error) {
    slot->used = true;
    return check(staging, staging->gpu->driver.event_record(slot->taken, staging->step), error);
}

/* On unified memory the processor writes the slot's device end itself: nothing is copied over a bus. */
static bool fill_device_slot(Staging *staging, StagingSlot *slot, const void *data, size_t size,
                             Error *error) {
    const CudaDriver *driver = &staging->gpu->driver;
    if (staging->gpu->unified) {
        memcpy((void *)slot->device, data, size);
        return true;
    }
    memcpy(slot->pinned, data, size);
    return check(staging, driver->copy_in(slot->device, slot->pinned, size, staging->copies),
                 error) &&
           check(staging, driver->event_record(slot->arrived, staging->copies), error) &&
           check(staging, driver->stream_wait_event(staging->step, slot->arrived, 0), error);
}

bool staging_input(Staging *staging, CUdeviceptr to, const void *data, int64_t bytes,
                   Error *error) {
    const CudaDriver *driver = &staging->gpu->driver;
    StagingSlot *slot = next_slot(staging, error);
    size_t size = (size_t)bytes;
    return slot && fill_device_slot(staging, slot, data, size, error) &&
           check(staging, driver->copy_within(to, slot->device, size, staging->step), error) &&
           mark_taken(staging, slot, error);
}

bool staging_upload(Staging *staging, CUdeviceptr to, const void *data, int64_t bytes,
                    Error *error) {
    bool done = true;
    for (int64_t at = 0; done && at < bytes; at += staging->bytes) {
        size_t size = (size_t)smaller(bytes - at, staging->bytes);
        StagingSlot *slot = next_slot(staging, error);
        if (!slot) return false;
        memcpy(slot->pinned, (const uint8_t *)data + at, size);
        done = check(staging,
                     staging->gpu->driver.copy_in(to + (CUdeviceptr)at, slot->pinned, size,
                                                  staging->step),
                     error) &&
               mark_taken(staging, slot, error);
    }
    return done;
}

bool staging_download(Staging *staging, CUdeviceptr from, void *data, int64_t bytes, Error *error) {
    const CudaDriver *driver = &staging->gpu->driver;
    if (staging->gpu->unified) {
        if (!check(staging, driver->stream_wait(staging->step), error)) return false;
        memcpy(data, (const void *)from, (size_t)bytes);
        return true;
    }
    for (int64_t at = 0; at < bytes; at += staging->bytes) {
        size_t size = (size_t)smaller(bytes - at, staging->bytes);
        StagingSlot *slot = next_slot(staging, error);
        if (!slot ||
            !check(staging,
                   driver->copy_out(slot->pinned, from + (CUdeviceptr)at, size, staging->step),
                   error) ||
            !mark_taken(staging, slot, error) ||
            !check(staging, driver->event_wait(slot->taken), error))
            return false;
        memcpy((uint8_t *)data + at, slot->pinned, size);
    }
    return true;
}
