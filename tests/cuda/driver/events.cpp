#include <memory>

#include "context.h"
#include "graphs.h"
#include "streams.h"

using driver::Moment;

struct CUevent_st {
    unsigned flags = 0;
    Moment moment;                /* of the latest record */
    std::shared_ptr<double> time; /* of it, in nanoseconds; negative until it is reached */
    CUgraph graph = nullptr;      /* the capture it was recorded in */
    std::vector<size_t> nodes;    /* and what it stands behind there */
};

namespace driver {

static Handles<CUevent_st> events("event");

void report_event_leaks() {
    report_leak(events.count(), "event");
}

/* A stream waits for an event of a capture, and takes part in it. */
static CUresult wait_captured(CUstream stream, CUevent event) {
    if (!captures().count(event->graph)) {
        return refuse(CUDA_ERROR_CAPTURED_EVENT,
                      "the event was recorded in a capture that has ended");
    }
    if (stream->capture && stream->capture != event->graph) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the event belongs to another capture");
    }
    join_capture(stream, event->graph, event->nodes);
    return CUDA_SUCCESS;
}

static CUresult timed(CUevent event) {
    events.check(event);
    if (event->flags & CU_EVENT_DISABLE_TIMING)
        return refuse(CUDA_ERROR_INVALID_HANDLE, "the event has no timing");
    if (event->graph || !event->time)
        return refuse(CUDA_ERROR_INVALID_HANDLE, "the event was not recorded");
    if (*event->time < 0) return refuse(CUDA_ERROR_NOT_READY, "the event is not reached");
    return CUDA_SUCCESS;
}

} // namespace driver

using namespace driver;

API CUresult cuEventCreate(CUevent *event, unsigned flags) {
    Call call(__func__);
    TRY(ready());
    if (flags & ~static_cast<unsigned>(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    }
    *event = events.create();
    (*event)->flags = flags;
    return CUDA_SUCCESS;
}

API CUresult cuEventDestroy_v2(CUevent event) {
    Call call(__func__);
    TRY(ready());
    events.destroy(events.check(event));
    return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent event, CUstream stream) {
    Call call(__func__);
    TRY(ready());
    TRY(check_stream(stream));
    events.check(event);
    event->graph = stream->capture;
    event->nodes = stream->tail;
    if (stream->capture) return CUDA_SUCCESS;
    auto time = event->time = std::make_shared<double>(-1);
    event->moment = append(stream, {{}, {}, [time] {
                                        *time = device_clock();
                                        return true;
                                    }});
    return CUDA_SUCCESS;
}

API CUresult cuEventSynchronize(CUevent event) {
    Call call(__func__);
    TRY(ready());
    events.check(event);
    TRY(need_no_capture());
    if (event->graph)
        return refuse(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture");
    advance(event->moment);
    return ready();
}

API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    Call call(__func__);
    TRY(ready());
    TRY(check_stream(stream));
    events.check(event);
    if (flags) return refuse(CUDA_ERROR_INVALID_VALUE, "flags must be 0");
    if (event->graph) return wait_captured(stream, event);
    if (!event->moment.stream) return CUDA_SUCCESS; /* never recorded */
    if (stream->capture) {
        invalidate_capture(stream);
        return refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                      "the event was recorded outside the capture");
    }
    append(stream, {event->moment, {}, [] { return true; }});
    return CUDA_SUCCESS;
}

#undef cuEventElapsedTime /* the name that all drivers have */
API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    Call call(__func__);
    TRY(ready());
    TRY(timed(start));
    TRY(timed(end));
    *milliseconds = static_cast<float>((*end->time - *start->time) * 1e-6);
    return CUDA_SUCCESS;
}
