/* Copies between the device's memory and the host's, on a stream beside the step's: offload. Captured in a
 * section's graph, each is a branch from where it starts to where it is waited for. */
#include "cuda/executor.h"

static bool check(Call *call, CUresult result) {
    return cuda_check(&call->executor->gpu->driver, result, call->error,
                      "a copy between host and %s", call->executor->gpu->name);
}

bool launch_copy_start(Call *call) {
    Executor *executor = call->executor;
    const CudaDriver *driver = &executor->gpu->driver;
    const CopyShape *copy = &call->operation->copy;
    const Buffer *buffers = executor->program->buffers,
                 *to = &buffers[call->operation->outputs[0].buffer];
    size_t size = (size_t)(copy->n * dtype_size(to->dtype));
    CUevent event = executor->copied[copy->id];
    CUresult copied;
    if (!check(call, driver->event_record(event, executor->step)) ||
        !check(call, driver->stream_wait_event(executor->copies, event, 0)))
        return false;
    if (to->space == SPACE_HOST)
        copied = driver->copy_out((void *)call->out[0], call->in[0], size, executor->copies);
    else
        copied = driver->copy_in(call->out[0], (const void *)call->in[0], size, executor->copies);
    return check(call, copied) && check(call, driver->event_record(event, executor->copies));
}

bool launch_copy_wait(Call *call) {
    Executor *executor = call->executor;
    return check(call, executor->gpu->driver.stream_wait_event(
                           executor->step, executor->copied[call->operation->copy.id], 0));
}
