#include "cuda/stopwatch.h"

static bool check(const Stopwatch *watch, CUresult result, Error *error) {
    return cuda_check(&watch->gpu->driver, result, error, "what was timed on %s failed",
                      watch->gpu->name);
}

bool stopwatch_open(Stopwatch *watch, const Gpu *gpu, CUstream stream, Error *error) {
    *watch = (Stopwatch){.gpu = gpu, .stream = stream};
    return check(watch, gpu->driver.event_create(&watch->began, CU_EVENT_DEFAULT), error) &&
           check(watch, gpu->driver.event_create(&watch->ended, CU_EVENT_DEFAULT), error);
}

void stopwatch_close(Stopwatch *watch) {
    if (watch->began) watch->gpu->driver.event_destroy(watch->began);
    if (watch->ended) watch->gpu->driver.event_destroy(watch->ended);
}

bool stopwatch_start(Stopwatch *watch, Error *error) {
    return check(watch, watch->gpu->driver.event_record(watch->began, watch->stream), error);
}

bool stopwatch_stop(Stopwatch *watch, double *seconds, Error *error) {
    const CudaDriver *driver = &watch->gpu->driver;
    float milliseconds = 0;
    if (!check(watch, driver->event_record(watch->ended, watch->stream), error) ||
        !check(watch, driver->event_wait(watch->ended), error) ||
        !check(watch, driver->event_elapsed(&milliseconds, watch->began, watch->ended), error))
        return false;
    *seconds = 1e-3 * (double)milliseconds;
    return true;
}
