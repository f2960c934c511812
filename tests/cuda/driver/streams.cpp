#include "streams.h"

#include <deque>
#include <random>

#include "context.h"
#include "graphs.h"
#include "host/runtime.h"

namespace driver {

static Handles<CUstream_st> streams("stream");
static std::vector<CUstream> all; /* with those that were destroyed and still have work */
static double clock_now;

double device_clock() {
    return clock_now;
}

void pass_time(double nanoseconds) {
    clock_now += nanoseconds;
}

size_t random_below(size_t count) {
    static std::mt19937 generator(host::settings().seed);
    return std::uniform_int_distribution<size_t>(0, count - 1)(generator);
}

bool reached(const Moment &moment) {
    return !moment.stream || moment.stream->done >= moment.count;
}

static bool can_step(CUstream stream) {
    return !stream->queue.empty() && reached(stream->queue.front().after);
}

static void step(CUstream stream) {
    Entry &entry = stream->queue.front();
    if (!entry.step()) return;
    for (const auto &allocation : entry.uses) allocation->queued--;
    stream->queue.pop_front();
    stream->done++;
}

/* The stream that must move for the moment to come nearer. */
static CUstream needed(const Moment &moment) {
    const Moment *next = &moment;
    while (!can_step(next->stream)) next = &next->stream->queue.front().after;
    return next->stream;
}

static CUstream any_that_can() {
    std::vector<CUstream> candidates;
    for (CUstream stream : all) {
        if (can_step(stream)) candidates.push_back(stream);
    }
    return candidates[random_below(candidates.size())];
}

/* Either as little as must be, or in a random order whatever may run. */
void advance(const Moment &moment) {
    if (reached(moment)) return;
    DeviceMemoryOpen open;
    bool little = random_below(2) == 0;
    while (!reached(moment)) step(little ? needed(moment) : any_that_can());
}

void finish(CUstream stream) {
    advance({stream, stream->issued});
}

void finish_all() {
    for (CUstream stream : all) finish(stream);
}

CUresult check_stream(CUstream stream) {
    if (!stream)
        return refuse(CUDA_ERROR_INVALID_HANDLE,
                      "the null stream is not modelled: create a stream");
    streams.check(stream);
    return CUDA_SUCCESS;
}

Moment append(CUstream stream, Entry entry) {
    for (const auto &allocation : entry.uses) allocation->queued++;
    stream->queue.push_back(std::move(entry));
    Moment moment = {stream, ++stream->issued};
    if (host::settings().eager_copies) advance(moment);
    return moment;
}

CUresult submit(CUstream stream, Task task) {
    TRY(check_stream(stream));
    if (stream->capture) {
        if (stream->capture->invalid) {
            return refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                          "an earlier call has spoilt the capture");
        }
        capture(stream, std::move(task));
        return CUDA_SUCCESS;
    }
    if (task.queued) task.queued();
    double nanoseconds = task.nanoseconds;
    auto run = std::move(task.run);
    append(stream, {{}, std::move(task.uses), [=] {
                        pass_time(nanoseconds);
                        run();
                        return true;
                    }});
    return CUDA_SUCCESS;
}

void report_stream_leaks() {
    report_leak(streams.count(), "stream");
}

} // namespace driver

using namespace driver;

API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    Call call(__func__);
    TRY(ready());
    if (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) {
        return refuse(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    }
    *stream = streams.create();
    all.push_back(*stream);
    return CUDA_SUCCESS;
}

/* What is queued is still done, at some time. */
API CUresult cuStreamDestroy_v2(CUstream stream) {
    Call call(__func__);
    TRY(check_stream(stream));
    if (stream->capture)
        die("stream %p is destroyed while it captures", static_cast<void *>(stream));
    streams.destroy(stream);
    return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream) {
    Call call(__func__);
    TRY(ready());
    TRY(check_stream(stream));
    TRY(need_no_capture());
    finish(stream);
    return ready();
}
