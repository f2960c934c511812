/* The parts of the runtime that need no scheduling: the kernels, the settings, memory. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "block.h"
#include "race.h"
#include "sanitizers.h"

#if TEST_MSAN
#include <sanitizer/msan_interface.h>
#endif

namespace host {

Block block;

std::vector<Kernel> &kernels() {
    static std::vector<Kernel> all;
    return all;
}

const Kernel *find_kernel(const char *name) {
    for (const Kernel &kernel : kernels())
        if (strcmp(kernel.name, name) == 0) return &kernel;
    return nullptr;
}

/* The position of variable `name`'s value in `values`, of which the first is the default. */
static unsigned choice(const char *name, std::vector<const char *> values) {
    const char *value = getenv(name);
    for (unsigned i = 0; i < values.size(); i++)
        if (!value || strcmp(value, values[i]) == 0) return i;
    fprintf(stderr, "%s=%s: expected one of", name, value);
    for (const char *known : values) fprintf(stderr, " %s", known);
    fprintf(stderr, "\n");
    exit(2);
}

static Settings read_settings() {
    const char *seed = getenv("TEST_GPU_SEED");
    return {static_cast<Order>(choice("TEST_GPU_ORDER", {"forward", "reverse", "random"})),
            seed ? static_cast<unsigned>(strtoul(seed, nullptr, 10)) : 1,
            choice("TEST_GPU_ASYNC", {"late", "eager"}) == 1};
}

const Settings &settings() {
    static const Settings read = read_settings();
    return read;
}

/* AddressSanitizer checks no access here: the redzones between shared variables are filled as well. */
__attribute__((no_sanitize("address"))) static void fill_with_ones(void *memory, size_t bytes) {
    volatile char *byte = static_cast<volatile char *>(memory);
    for (size_t i = 0; i < bytes; i++) byte[i] = static_cast<char>(0xff);
}

void poison(void *memory, size_t bytes) {
    if (TEST_ASAN)
        fill_with_ones(memory, bytes);
    else
        memset(memory, 0xff, bytes);
#if TEST_MSAN
    __msan_poison(memory, bytes);
#endif
}

void trust(const void *memory, size_t bytes) {
#if TEST_MSAN
    __msan_unpoison(memory, bytes);
#else
    (void)memory, (void)bytes;
#endif
}

void check_initialised(const void *memory, size_t bytes) {
#if TEST_MSAN
    __msan_check_mem_is_initialized(memory, bytes);
#else
    (void)memory, (void)bytes;
#endif
}

uint3 thread_index() {
    return block.current->index;
}

uint3 block_index() {
    return block.index;
}

dim3 block_size() {
    return block.size;
}

dim3 grid_size() {
    return block.grid;
}

unsigned thread_number() {
    return block.current->number;
}

unsigned lane() {
    return block.current->number % warp_size;
}

unsigned char *static_shared() {
    return block.shared;
}

unsigned char *dynamic_shared() {
    return block.shared + block.static_bytes;
}

size_t dynamic_shared_bytes() {
    return block.dynamic_bytes;
}

/* The end of a fault's report: who waits for what. */
static void report_threads() {
    unsigned waiting = 0;
    for (const Thread &thread : block.threads) {
        if (thread.state != State::in_collective && thread.state != State::at_barrier) continue;
        if (waiting++ < 4)
            fprintf(stderr, "  thread %u waits at %s:%d, %s\n", thread.number, thread.site.file,
                    thread.site.line,
                    thread.state == State::at_barrier ? "a barrier" : "a warp's operation");
    }
    fprintf(stderr, "  of %zu threads %u wait and %u have ended\n", block.threads.size(), waiting,
            block.exited);
}

void kernel_fault(const char *message, Site site, Site other) {
    fprintf(stderr, "kernel fault: %s\n", message);
    if (block.kernel)
        fprintf(stderr, "  in %s (%s), block (%u, %u, %u)\n", block.kernel->name,
                block.kernel->file, block.index.x, block.index.y, block.index.z);
    if (block.current) fprintf(stderr, "  thread %u\n", block.current->number);
    if (site.file) fprintf(stderr, "  at %s:%d\n", site.file, site.line);
    if (other.file) fprintf(stderr, "  against %s:%d\n", other.file, other.line);
    report_threads();
    fflush(nullptr);
    abort();
}

} // namespace host
