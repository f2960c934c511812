/* Captures and graphs; what streams and events know of them. */
#ifndef TEST_CUDA_GRAPHS_H
#define TEST_CUDA_GRAPHS_H

#include <deque>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "streams.h"

namespace driver {

struct Node {
    Task task;
    std::vector<size_t> after; /* nodes */
};
typedef std::vector<Node> Nodes;

} // namespace driver

/* A graph; while it is captured, its streams point to it. */
struct CUgraph_st {
    driver::Nodes nodes;
    CUstream origin = nullptr;
    std::set<CUstream> streams;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
    bool invalid = false;
};

struct CUstream_st {
    std::deque<driver::Entry> queue;
    int64_t issued = 0, done = 0; /* entries */
    CUgraph capture = nullptr;    /* not null while it captures */
    std::vector<size_t> tail;     /* nodes the next captured one comes after */
};

namespace driver {

/* Adds the work to the stream's capture. */
void capture(CUstream stream, Task task);

/* The stream continues after these nodes too, and takes part in the capture. */
void join_capture(CUstream stream, CUgraph graph, const std::vector<size_t> &nodes);

/* The captures in progress. */
const std::set<CUgraph> &captures();

} // namespace driver

#endif
