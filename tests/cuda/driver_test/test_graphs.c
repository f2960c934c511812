/* Captures and graphs. */
#include "rig.h"

enum { N = 64, BYTES = N * sizeof(float), SEEDS = 16 };

static void begin(Rig *rig) {
    DO(rig->cuda.capture_begin(rig->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

/* Ends the capture, launches the graph `times` times and waits. */
static void launch_captured(Rig *rig, int times) {
    CUgraph graph;
    CUgraphExec executable;
    DO(rig->cuda.capture_end(rig->stream, &graph));
    DO(rig->cuda.graph_instantiate(&executable, graph, 0));
    DO(rig->cuda.graph_destroy(graph));
    for (int i = 0; i < times; i++) DO(rig->cuda.graph_launch(executable, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    DO(rig->cuda.graph_exec_destroy(executable));
}

static bool ends_with(Rig *rig, CUresult error) {
    CUgraph graph;
    return FAILS(rig->cuda.capture_end(rig->stream, &graph), error) && !graph;
}

static CUevent new_event(Rig *rig) {
    CUevent event;
    DO(rig->cuda.event_create(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

/* Whether all floats are `value`; frees the memory. */
static bool all_are(Rig *rig, CUdeviceptr memory, float value) {
    float host[N];
    DO(rig->cuda.copy_out(host, memory, BYTES, rig->stream));
    DO(rig->cuda.release(memory));
    bool same = true;
    for (int i = 0; i < N; i++) same = same && host[i] == value;
    return same;
}

static CUdeviceptr zeros(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    DO(rig->cuda.fill_bytes(memory, 0, BYTES, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    return memory;
}

static bool replays(Rig *rig) {
    CUdeviceptr sum = zeros(rig);
    begin(rig);
    queue_add(rig, rig->stream, sum, sum, 1, N);
    queue_add(rig, rig->stream, sum, sum, 2, N);
    launch_captured(rig, 3);
    return all_are(rig, sum, 9);
}

/* b = a + 1 on the other stream, c = b + 1 back on the first; joined before c, or behind it. */
static bool forks(Rig *rig, bool joined_in_time) {
    CUdeviceptr a = zeros(rig), b = zeros(rig), c = zeros(rig);
    CUevent fork = new_event(rig), join = new_event(rig);
    begin(rig);
    DO(rig->cuda.event_record(fork, rig->stream));
    DO(rig->cuda.stream_wait_event(rig->other, fork, 0));
    queue_add(rig, rig->other, b, a, 1, N);
    DO(rig->cuda.event_record(join, rig->other));
    if (joined_in_time) DO(rig->cuda.stream_wait_event(rig->stream, join, 0));
    queue_add(rig, rig->stream, c, b, 1, N);
    if (!joined_in_time) DO(rig->cuda.stream_wait_event(rig->stream, join, 0));
    launch_captured(rig, 1);
    DO(rig->cuda.event_destroy(fork));
    DO(rig->cuda.event_destroy(join));
    DO(rig->cuda.release(a));
    DO(rig->cuda.release(b));
    return all_are(rig, c, 2);
}

static bool forks_and_joins(Rig *rig) {
    return forks(rig, true);
}

static bool joins_too_late(Rig *rig) {
    return forks(rig, false);
}

static bool never_joins(Rig *rig) {
    CUdeviceptr memory = zeros(rig);
    CUevent fork = new_event(rig);
    begin(rig);
    DO(rig->cuda.event_record(fork, rig->stream));
    DO(rig->cuda.stream_wait_event(rig->other, fork, 0));
    queue_add(rig, rig->other, memory, memory, 1, N);
    DO(rig->cuda.event_destroy(fork));
    return ends_with(rig, CUDA_ERROR_STREAM_CAPTURE_UNJOINED) && all_are(rig, memory, 0);
}

static bool synchronises(Rig *rig) {
    begin(rig);
    return FAILS(rig->cuda.stream_wait(rig->stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) &&
           ends_with(rig, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static bool synchronises_another_stream(Rig *rig) {
    begin(rig);
    return FAILS(rig->cuda.stream_wait(rig->other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) &&
           ends_with(rig, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static bool allocates(Rig *rig) {
    CUdeviceptr memory;
    begin(rig);
    return FAILS(rig->cuda.allocate(&memory, BYTES), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) &&
           ends_with(rig, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static bool copies_pageable_memory(Rig *rig) {
    float host[N] = {0};
    CUdeviceptr memory = zeros(rig);
    begin(rig);
    return FAILS(rig->cuda.copy_in(memory, host, BYTES, rig->stream),
                 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) &&
           ends_with(rig, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) && all_are(rig, memory, 0);
}

static bool waits_for_what_is_outside(Rig *rig) {
    CUevent event = new_event(rig);
    DO(rig->cuda.event_record(event, rig->other));
    begin(rig);
    bool refused = FAILS(rig->cuda.stream_wait_event(rig->stream, event, 0),
                         CUDA_ERROR_STREAM_CAPTURE_ISOLATION) &&
                   ends_with(rig, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    DO(rig->cuda.event_destroy(event));
    return refused;
}

/* An event of a capture is of no use outside. */
static bool waits_for_a_captured_event(Rig *rig) {
    CUdeviceptr memory = zeros(rig);
    CUevent event = new_event(rig);
    begin(rig);
    queue_add(rig, rig->stream, memory, memory, 1, N);
    DO(rig->cuda.event_record(event, rig->stream));
    launch_captured(rig, 1);
    bool refused =
        FAILS(rig->cuda.event_wait(event), CUDA_ERROR_CAPTURED_EVENT) &&
        FAILS(rig->cuda.stream_wait_event(rig->other, event, 0), CUDA_ERROR_CAPTURED_EVENT);
    DO(rig->cuda.event_destroy(event));
    return refused && all_are(rig, memory, 1);
}

static bool ends_another_streams_capture(Rig *rig) {
    CUgraph graph;
    begin(rig);
    bool refused = FAILS(rig->cuda.capture_end(rig->other, &graph), CUDA_ERROR_ILLEGAL_STATE) &&
                   FAILS(rig->cuda.capture_begin(rig->stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                         CUDA_ERROR_ILLEGAL_STATE);
    DO(rig->cuda.capture_end(rig->stream, &graph));
    DO(rig->cuda.graph_destroy(graph));
    return refused;
}

static bool launches_over_freed_memory(Rig *rig) {
    CUgraph graph;
    CUgraphExec executable;
    CUdeviceptr memory = zeros(rig);
    begin(rig);
    queue_add(rig, rig->stream, memory, memory, 1, N);
    DO(rig->cuda.capture_end(rig->stream, &graph));
    DO(rig->cuda.graph_instantiate(&executable, graph, 0));
    DO(rig->cuda.release(memory));
    DO(rig->cuda.graph_launch(executable, rig->stream));
    return true;
}

static bool destroys_a_running_graph(Rig *rig) {
    CUgraph graph;
    CUgraphExec executable;
    CUdeviceptr memory = zeros(rig);
    begin(rig);
    queue_add(rig, rig->stream, memory, memory, 1, N);
    DO(rig->cuda.capture_end(rig->stream, &graph));
    DO(rig->cuda.graph_instantiate(&executable, graph, 0));
    DO(rig->cuda.graph_launch(executable, rig->stream));
    DO(rig->cuda.graph_exec_destroy(executable));
    return true;
}

/* Results of a graph are hidden from its launch on. */
static bool reads_a_graphs_results_early(Rig *rig) {
    CUdeviceptr memory = zeros(rig);
    float *results = pinned_memory(rig, BYTES);
    CUgraph graph;
    CUgraphExec executable;
    begin(rig);
    DO(rig->cuda.copy_out(results, memory, BYTES, rig->stream));
    DO(rig->cuda.capture_end(rig->stream, &graph));
    DO(rig->cuda.graph_instantiate(&executable, graph, 0));
    results[0] = 0;
    DO(rig->cuda.graph_launch(executable, rig->stream));
    return results[0] == 0;
}

static void graphs_replay_in_order(void **state) {
    (void)state;
    assert_int_equal(wrong_seeds(replays, SEEDS / 4), 0);
    assert_int_equal(wrong_seeds(forks_and_joins, SEEDS), 0);
}

static void a_missing_edge_shows_on_some_seeds(void **state) {
    (void)state;
    assert_in_range(wrong_seeds(joins_too_late, SEEDS), SEEDS / 4, SEEDS);
}

static void captures_refuse_what_they_must(void **state) {
    (void)state;
    expect(never_joins, RIGHT, "does not join");
    expect(synchronises, RIGHT, "while a stream captures");
    expect(synchronises_another_stream, RIGHT, "while a stream captures");
    expect(allocates, RIGHT, "while a stream captures");
    expect(copies_pageable_memory, RIGHT, "pageable");
    expect(waits_for_what_is_outside, RIGHT, "outside the capture");
    expect(waits_for_a_captured_event, RIGHT, "has ended");
    expect(ends_another_streams_capture, RIGHT, "does not capture");
}

static void graphs_outlive_nothing_they_use(void **state) {
    (void)state;
    expect(launches_over_freed_memory, DIED, "were freed");
    expect(destroys_a_running_graph, DIED, "is queued");
}

static void results_of_graphs_are_late_too(void **state) {
    (void)state;
    expect(reads_a_graphs_results_early, WRONG, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_replay_in_order),
        cmocka_unit_test(a_missing_edge_shows_on_some_seeds),
        cmocka_unit_test(captures_refuse_what_they_must),
        cmocka_unit_test(graphs_outlive_nothing_they_use),
        cmocka_unit_test(results_of_graphs_are_late_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
