/* Streams: queues of work that is done when it must be.
 *
 * Work of a stream runs in order, when the program waits for it or for something behind it. Until then, and
 * among what may run then, the choice is random. */
#ifndef TEST_CUDA_STREAMS_H
#define TEST_CUDA_STREAMS_H

#include <functional>

#include "driver.h"
#include "memory.h"

namespace driver {

/* What a place in a stream, or a node of a graph, does. */
struct Task {
    const char *name;
    double nanoseconds; /* that the chip would take */
    Uses uses;
    std::function<void()> run;
    std::function<void()> queued = nullptr; /* done at once when it is queued; may be null */
};

/* A moment in a stream: when `count` entries of it are done. */
struct Moment {
    CUstream stream = nullptr; /* null: always reached */
    int64_t count = 0;
};
bool reached(const Moment &moment);

/* A place in a stream that is reached after its predecessor and `after`. */
struct Entry {
    Moment after;
    Uses uses;
    std::function<bool()> step; /* does a part of it; whether that was the last */
};

/* The stream of a handle that is given to `call`; ends the program if there is none. */
CUresult check_stream(CUstream stream);

/* Queues work, or adds it to the graph that the stream captures. */
CUresult submit(CUstream stream, Task task);
/* Queues an entry; the stream does not capture. */
Moment append(CUstream stream, Entry entry);

/* Does what a moment needs, and perhaps more. */
void advance(const Moment &moment);
void finish(CUstream stream);
void finish_all();

/* Nanoseconds of the pretended chip since the start. */
double device_clock();
void pass_time(double nanoseconds);

/* A number below `count`, of the sequence TEST_GPU_SEED starts. */
size_t random_below(size_t count);

/* ---- captures (graphs.cpp) ---- */

bool is_capturing(CUstream stream);
/* The capture can only fail now. */
void invalidate_capture(CUstream stream);
/* Refuses, and invalidates captures, when one in progress forbids what waits or allocates. */
CUresult need_no_capture();

} // namespace driver

#endif
