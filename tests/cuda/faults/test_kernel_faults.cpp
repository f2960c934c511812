/* Runs the kernels of kernel_faults.cu, each in a process of its own, in one mode: every fault is found by some
 * mode, and nothing is found in the kernels that are right. VERBOSE=1 shows the reports. */
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/runtime.h"
#include "host/sanitizers.h"

enum Mode { PLAIN = 1, ASAN = 2, MSAN = 4, RACE = 8, ALL = 15 };

static constexpr Mode this_mode = TEST_ASAN ? ASAN : TEST_MSAN ? MSAN : TEST_RACE ? RACE : PLAIN;

struct Case {
    const char *kernel;
    int found_by; /* at least; 0: there is no fault */
};

/* PLAIN finds wrong results, in one of the orders below, and what the runtime itself refuses; so do the others,
 * each with more. */
static const Case cases[] = {
    {"no_barrier", ALL},
    {"no_barrier_between_uses", ALL},
    {"different_barriers", ALL},
    {"barrier_after_exit", ALL},
    {"no_barrier_in_warp", ALL},
    {"past_shared", ASAN},
    {"past_dynamic_shared", ASAN},
    {"past_output", ALL},
    {"before_input", ASAN},
    {"misaligned_vector", ASAN},
    {"index_overflow", ASAN},
    {"unwritten_shared", MSAN | RACE},
    {"unwritten_device", MSAN},
    {"unwritten_register", MSAN},
    {"shared_of_another_block", ALL},
    {"shuffle_in_branch", ALL},
    {"different_collectives", ALL},
    {"mask_without_the_caller", ALL},
    {"mma_without_a_lane", ALL},
    {"matrix_row_misaligned", ALL},
    {"copy_not_awaited", ALL},
    {"copy_of_a_later_group", ALL},
    {"copy_without_barrier", ALL},
    {"copy_too_early", RACE},
    {"copy_past_input", ASAN},
    {"sum_of_blocks", ALL},
    {"result_of_another_block", MSAN | RACE},
    {"right_barriers", 0},
    {"right_warps", 0},
    {"right_copies", 0},
    {"right_atomics", 0},
};

struct Way {
    const char *order, *async, *seed;
};

static const Way ways[] = {
    {"forward", "late", "1"}, {"reverse", "late", "1"}, {"forward", "eager", "1"},
    {"random", "late", "1"},  {"random", "late", "2"},  {"random", "late", "3"},
};

static constexpr int blocks = 2, threads = 64, count = blocks * threads;

struct Arrays {
    float *out;
    const float *in;
    float *scratch;
    int n;
};

static float *device_memory() {
    size_t bytes = count * sizeof(float);
    void *memory = nullptr;
    if (posix_memalign(&memory, 256, bytes) != 0) abort();
    host::note_allocation(memory, bytes);
    host::poison(memory, bytes);
    return static_cast<float *>(memory);
}

/* Ends the process with success when nothing is wrong with what the kernel does. */
[[noreturn]] static void run(const char *name) {
    float *in = device_memory();
    for (int i = 0; i < count; i++) in[i] = static_cast<float>(100 + i);
    host::trust(in, count * sizeof *in);
    Arrays arrays = {device_memory(), in, device_memory(), count};
    void *parameters[] = {&arrays};
    host::launch(*host::find_kernel(name), dim3(blocks), dim3(threads), threads * sizeof(float),
                 parameters);
    host::check_initialised(arrays.out, count * sizeof(float));
    for (int i = 0; i < count; i++) {
        int from = i / threads * threads + threads - 1 - i % threads;
        if (arrays.out[i] != in[from]) {
            fprintf(stderr, "%s: out[%d] is %g, not %g\n", name, i,
                    static_cast<double>(arrays.out[i]), static_cast<double>(in[from]));
            _exit(3);
        }
    }
    _exit(0);
}

static bool is_found(const char *kernel, const Way &way) {
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        const rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        setenv("TEST_GPU_ORDER", way.order, 1);
        setenv("TEST_GPU_ASYNC", way.async, 1);
        setenv("TEST_GPU_SEED", way.seed, 1);
        if (!getenv("VERBOSE")) dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        run(kernel);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
}

int main() {
    int failures = 0;
    for (const Case &test : cases) {
        int found = 0;
        for (const Way &way : ways) found += is_found(test.kernel, way);
        bool wrong = test.found_by & this_mode ? found == 0 : test.found_by == 0 && found != 0;
        printf("%-26s found in %d ways%s\n", test.kernel, found, wrong ? ": WRONG" : "");
        failures += wrong;
    }
    return failures != 0;
}
