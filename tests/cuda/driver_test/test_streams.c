/* Streams, events and copies: what a program may rely on, and what the driver makes of programs that rely on
 * more. */
#include "rig.h"

#include <string.h>

enum { N = 100, BYTES = N * sizeof(float), SEEDS = 12 };

/* The buffers of most scenarios: the result of adding 1 to 0, 1, 2, ... */
typedef struct Sum {
    float *in, *out; /* pinned */
    CUdeviceptr from, to;
} Sum;

static Sum make_sum(Rig *rig) {
    Sum sum = {pinned_memory(rig, BYTES), pinned_memory(rig, BYTES), device_memory(rig, BYTES),
               device_memory(rig, BYTES)};
    for (int i = 0; i < N; i++) sum.in[i] = (float)i;
    return sum;
}

static bool is_right(const float *out, float term) {
    for (int i = 0; i < N; i++)
        if (!(out[i] == (float)i + term)) return false;
    return true;
}

static bool end_sum(Rig *rig, const Sum *sum, float term) {
    bool right = is_right(sum->out, term);
    DO(rig->cuda.stream_wait(rig->stream));
    DO(rig->cuda.stream_wait(rig->other));
    DO(rig->cuda.release_host(sum->in));
    DO(rig->cuda.release_host(sum->out));
    DO(rig->cuda.release(sum->from));
    DO(rig->cuda.release(sum->to));
    return right;
}

static bool one_stream(Rig *rig) {
    Sum sum = make_sum(rig);
    DO(rig->cuda.copy_in(sum.from, sum.in, BYTES, rig->stream));
    queue_add(rig, rig->stream, sum.to, sum.from, 1, N);
    DO(rig->cuda.copy_out(sum.out, sum.to, BYTES, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    return end_sum(rig, &sum, 1);
}

/* The copy travels on another stream; the kernel waits for it, or not. */
static bool two_streams(Rig *rig, bool waits) {
    Sum sum = make_sum(rig);
    CUevent copied;
    DO(rig->cuda.event_create(&copied, CU_EVENT_DISABLE_TIMING));
    DO(rig->cuda.copy_in(sum.from, sum.in, BYTES, rig->other));
    DO(rig->cuda.event_record(copied, rig->other));
    if (waits) DO(rig->cuda.stream_wait_event(rig->stream, copied, 0));
    queue_add(rig, rig->stream, sum.to, sum.from, 1, N);
    DO(rig->cuda.copy_out(sum.out, sum.to, BYTES, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    DO(rig->cuda.event_destroy(copied));
    return end_sum(rig, &sum, 1);
}

static bool two_streams_with_wait(Rig *rig) {
    return two_streams(rig, true);
}

static bool two_streams_without_wait(Rig *rig) {
    return two_streams(rig, false);
}

/* A second batch is copied over the first, which a kernel may still read. */
static bool overwrites_too_early(Rig *rig) {
    Sum sum = make_sum(rig);
    float *next = pinned_memory(rig, BYTES);
    memset(next, 0, BYTES);
    DO(rig->cuda.copy_in(sum.from, sum.in, BYTES, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    queue_add(rig, rig->stream, sum.to, sum.from, 1, N);
    DO(rig->cuda.copy_in(sum.from, next, BYTES, rig->other));
    DO(rig->cuda.copy_out(sum.out, sum.to, BYTES, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    DO(rig->cuda.stream_wait(rig->other));
    DO(rig->cuda.release_host(next));
    return end_sum(rig, &sum, 1);
}

static bool reads_before_waiting(Rig *rig) {
    Sum sum = make_sum(rig);
    DO(rig->cuda.copy_in(sum.from, sum.in, BYTES, rig->stream));
    DO(rig->cuda.copy_out(sum.out, sum.from, BYTES, rig->stream));
    bool right = is_right(sum.out, 0);
    DO(rig->cuda.stream_wait(rig->stream));
    return right;
}

static bool reuses_pinned(Rig *rig) {
    Sum sum = make_sum(rig);
    DO(rig->cuda.copy_in(sum.from, sum.in, BYTES, rig->stream));
    memset(sum.in, 0, BYTES);
    DO(rig->cuda.copy_out(sum.out, sum.from, BYTES, rig->stream));
    DO(rig->cuda.stream_wait(rig->stream));
    return end_sum(rig, &sum, 0);
}

/* The driver has taken the bytes when the call returns, and has brought them when it returns. */
static bool pageable_memory(Rig *rig) {
    Sum sum = make_sum(rig);
    float in[N], out[N];
    for (int i = 0; i < N; i++) in[i] = (float)i;
    DO(rig->cuda.copy_in(sum.from, in, BYTES, rig->stream));
    memset(in, 0, BYTES);
    DO(rig->cuda.copy_out(out, sum.from, BYTES, rig->stream));
    memcpy(sum.out, out, BYTES);
    return end_sum(rig, &sum, 0);
}

static bool null_stream(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    bool refused = FAILS(rig->cuda.fill_bytes(memory, 0, BYTES, NULL), CUDA_ERROR_INVALID_HANDLE);
    DO(rig->cuda.release(memory));
    return refused;
}

static bool destroyed_stream(Rig *rig) {
    CUstream stream;
    DO(rig->cuda.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    DO(rig->cuda.stream_destroy(stream));
    DO(rig->cuda.stream_wait(stream));
    return true;
}

static bool measures_time(Rig *rig) {
    Sum sum = make_sum(rig);
    CUevent start, end;
    float small, large;
    DO(rig->cuda.event_create(&start, 0));
    DO(rig->cuda.event_create(&end, 0));
    DO(rig->cuda.event_record(start, rig->stream));
    queue_add(rig, rig->stream, sum.to, sum.to, 1, N);
    DO(rig->cuda.event_record(end, rig->stream));
    bool unready = FAILS(rig->cuda.event_elapsed(&small, start, end), CUDA_ERROR_NOT_READY);
    DO(rig->cuda.event_wait(end));
    DO(rig->cuda.event_elapsed(&small, start, end));
    DO(rig->cuda.event_record(start, rig->stream));
    for (int i = 0; i < 10; i++) queue_add(rig, rig->stream, sum.to, sum.to, 1, N);
    DO(rig->cuda.event_record(end, rig->stream));
    DO(rig->cuda.event_wait(end));
    DO(rig->cuda.event_elapsed(&large, start, end));
    DO(rig->cuda.event_destroy(start));
    DO(rig->cuda.event_destroy(end));
    for (int i = 0; i < N; i++) sum.out[i] = (float)i;
    return unready && small > 0 && large > 5 * small && end_sum(rig, &sum, 0);
}

static bool launch_fails(Rig *rig) {
    CUdeviceptr memory = device_memory(rig, BYTES);
    queue_add(rig, rig->stream, memory, memory, 1, N);
    return FAILS(rig->cuda.stream_wait(rig->stream), CUDA_ERROR_LAUNCH_FAILED) &&
           FAILS(rig->cuda.release(memory), CUDA_ERROR_LAUNCH_FAILED);
}

static void right_programs_are_right_on_every_seed(void **state) {
    (void)state;
    assert_int_equal(wrong_seeds(one_stream, SEEDS), 0);
    assert_int_equal(wrong_seeds(two_streams_with_wait, SEEDS), 0);
    assert_int_equal(wrong_seeds(pageable_memory, SEEDS), 0);
    expect_in(one_stream, "TEST_GPU_ASYNC=eager", RIGHT, NULL);
}

static void a_missing_wait_shows_on_some_seeds(void **state) {
    (void)state;
    assert_true(wrong_seeds(two_streams_without_wait, SEEDS) > SEEDS / 4);
    assert_true(wrong_seeds(overwrites_too_early, SEEDS) > 0);
}

static void results_are_not_there_before_the_wait(void **state) {
    (void)state;
    assert_int_equal(wrong_seeds(reads_before_waiting, SEEDS), SEEDS);
}

static void pinned_memory_is_read_late(void **state) {
    (void)state;
    assert_int_equal(wrong_seeds(reuses_pinned, SEEDS), SEEDS);
}

static void bad_streams_are_refused(void **state) {
    (void)state;
    expect(null_stream, RIGHT, "null stream");
    expect(destroyed_stream, DIED, "was destroyed");
}

static void events_measure_time(void **state) {
    (void)state;
    expect(measures_time, RIGHT, NULL);
}

static void a_failed_launch_fails_all_later_calls(void **state) {
    (void)state;
    expect_in(launch_fails, "TEST_GPU_FAULT=launch:1", CALL_FAILED,
              "module_unload(rig->module) gave 719");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_programs_are_right_on_every_seed),
        cmocka_unit_test(a_missing_wait_shows_on_some_seeds),
        cmocka_unit_test(results_are_not_there_before_the_wait),
        cmocka_unit_test(pinned_memory_is_read_late),
        cmocka_unit_test(bad_streams_are_refused),
        cmocka_unit_test(events_measure_time),
        cmocka_unit_test(a_failed_launch_fails_all_later_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
