#include "graphs.h"

#include <algorithm>

#include "context.h"

/* An instantiated graph. */
struct CUgraphExec_st {
    std::shared_ptr<const driver::Nodes> nodes;
    driver::Moment last; /* the end of its latest launch: launches of one graph do not overlap */
};

namespace driver {

static Handles<CUgraph_st> graphs("graph");
static Handles<CUgraphExec_st> executables("executable graph");
static std::set<CUgraph> in_progress;

const std::set<CUgraph> &captures() {
    return in_progress;
}

bool is_capturing(CUstream stream) {
    return stream && stream->capture;
}

void invalidate_capture(CUstream stream) {
    stream->capture->invalid = true;
}

CUresult need_no_capture() {
    bool forbidden = false;
    for (CUgraph graph : in_progress) {
        bool concerned = graph->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                         (graph->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                          graph->thread == std::this_thread::get_id());
        graph->invalid |= concerned;
        forbidden |= concerned;
    }
    if (!forbidden) return CUDA_SUCCESS;
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not allowed while a stream captures");
}

void capture(CUstream stream, Task task) {
    Nodes &nodes = stream->capture->nodes;
    nodes.push_back({std::move(task), stream->tail});
    stream->tail = {nodes.size() - 1};
}

void join_capture(CUstream stream, CUgraph graph, const std::vector<size_t> &nodes) {
    stream->capture = graph;
    graph->streams.insert(stream);
    for (size_t node : nodes) {
        if (std::count(stream->tail.begin(), stream->tail.end(), node) == 0)
            stream->tail.push_back(node);
    }
}

/* Whether everything that the graph's streams did comes before the end of its origin. */
static bool is_joined(const CUgraph graph) {
    std::vector<bool> before(graph->nodes.size());
    for (size_t node : graph->origin->tail) before[node] = true;
    for (size_t node = graph->nodes.size(); node-- > 0;) {
        if (!before[node]) continue;
        for (size_t earlier : graph->nodes[node].after) before[earlier] = true;
    }
    return std::find(before.begin(), before.end(), false) == before.end();
}

static void leave_capture(CUgraph graph) {
    for (CUstream stream : graph->streams) {
        stream->capture = nullptr;
        stream->tail.clear();
    }
    in_progress.erase(graph);
}

/* One launch under way. */
struct Run {
    std::shared_ptr<const Nodes> nodes;
    std::vector<size_t> waits; /* of each node: nodes it still waits for */
    std::vector<size_t> can_run;

    explicit Run(const std::shared_ptr<const Nodes> &graph) : nodes(graph) {
        for (const Node &node : *nodes) waits.push_back(node.after.size());
        for (size_t i = 0; i < waits.size(); i++) {
            if (!waits[i]) can_run.push_back(i);
        }
    }

    /* Runs one node that may; whether none is left. */
    bool step() {
        if (can_run.empty()) return true;
        std::swap(can_run[random_below(can_run.size())], can_run.back());
        size_t chosen = can_run.back();
        can_run.pop_back();
        pass_time((*nodes)[chosen].task.nanoseconds);
        (*nodes)[chosen].task.run();
        for (size_t i = chosen + 1; i < waits.size(); i++) {
            const auto &after = (*nodes)[i].after;
            if (std::count(after.begin(), after.end(), chosen) && --waits[i] == 0)
                can_run.push_back(i);
        }
        return can_run.empty();
    }
};

void report_graph_leaks() {
    report_leak(graphs.count(), "graph");
    report_leak(executables.count(), "executable graph");
}

} // namespace driver

using namespace driver;

API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    Call call(__func__);
    TRY(ready());
    TRY(check_stream(stream));
    if (stream->capture) return refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream captures already");
    CUgraph graph = graphs.create();
    graph->origin = stream;
    graph->mode = mode;
    graph->thread = std::this_thread::get_id();
    in_progress.insert(graph);
    join_capture(stream, graph, {});
    return CUDA_SUCCESS;
}

API CUresult cuStreamEndCapture(CUstream stream, CUgraph *result) {
    Call call(__func__);
    TRY(ready());
    TRY(check_stream(stream));
    CUgraph graph = stream->capture;
    *result = nullptr;
    if (!graph) return refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream does not capture");
    if (graph->origin != stream) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began in another stream");
    }
    if (graph->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        graph->thread != std::this_thread::get_id()) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                      "the capture began in another thread");
    }
    bool joined = is_joined(graph);
    leave_capture(graph);
    if (!graph->invalid && joined) {
        *result = graph;
        return CUDA_SUCCESS;
    }
    graphs.destroy(graph);
    if (graph->invalid) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                      "an earlier call has spoilt the capture");
    }
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                  "work of another stream does not join this one again");
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                         unsigned long long flags) {
    Call call(__func__);
    TRY(ready());
    graphs.check(graph);
    if (flags) return refuse(CUDA_ERROR_INVALID_VALUE, "flags 0x%llx are not modelled", flags);
    *executable = executables.create();
    (*executable)->nodes = std::make_shared<const Nodes>(graph->nodes);
    return CUDA_SUCCESS;
}

API CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    Call call(__func__);
    TRY(ready());
    TRY(check_stream(stream));
    executables.check(executable);
    if (stream->capture) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "graphs inside graphs are not modelled");
    }
    Entry entry = {executable->last, {}, nullptr};
    for (const Node &node : *executable->nodes) {
        check_live(node.task.uses, node.task.name);
        entry.uses.insert(entry.uses.end(), node.task.uses.begin(), node.task.uses.end());
        if (node.task.queued) node.task.queued();
    }
    auto run = std::make_shared<Run>(executable->nodes);
    entry.step = [run] { return run->step(); };
    executable->last = append(stream, std::move(entry));
    return CUDA_SUCCESS;
}

API CUresult cuGraphDestroy(CUgraph graph) {
    Call call(__func__);
    TRY(ready());
    graphs.check(graph);
    if (in_progress.count(graph)) die("the graph is still being captured");
    graph->nodes.clear();
    graphs.destroy(graph);
    return CUDA_SUCCESS;
}

API CUresult cuGraphExecDestroy(CUgraphExec executable) {
    Call call(__func__);
    TRY(ready());
    executables.check(executable);
    if (!reached(executable->last)) die("the graph is destroyed while a launch of it is queued");
    executable->nodes.reset();
    executables.destroy(executable);
    return CUDA_SUCCESS;
}
