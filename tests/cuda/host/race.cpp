/* The race detector. Kernels are compiled with -fsanitize=thread, but linked to the functions below in
 * place of its library: they see every access of a kernel's threads to device and shared memory, and
 * report races between threads and between blocks, and reads of shared memory that the block has not
 * written.
 *
 * Two accesses of one launch are ordered when a barrier of the block, or a __syncwarp() that both lanes
 * take part in, lies between them; blocks are never ordered. Shuffles, mma and fences order nothing. */
#include "race.h"

#if TEST_RACE

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include <dlfcn.h>
#include <sys/mman.h>

#include "block.h"

namespace host {

/* Time in a block is counted in barriers, and in a warp by a vector clock. Epochs go on from launch to
 * launch, so that what a cell holds from before is known to be old. */
typedef uint32_t Epoch;
static Epoch now = 1, launch_begin = 1, block_begin = 1;
static uint16_t clocks[32][warp_size][warp_size]; /* warp, lane, what it knows of each lane */

struct Event {
    Epoch epoch;
    uint16_t thread, clock;
    uint32_t code; /* offset in the library */
};

/* What happened to one byte. Two reads are kept, so that a reader of its own does not hide another. */
struct Cell {
    Event write, reads[2];
    bool atomic; /* the write was */
};

struct Region {
    size_t bytes;
    Cell *cells;
    bool shared; /* memory of the block */
};

static std::map<const char *, Region> regions; /* by their first byte */
static std::set<std::pair<uint32_t, uint32_t>> reported;
static constexpr size_t reports_shown = 20;

static void forget(const char *memory, size_t bytes) {
    auto next = regions.lower_bound(memory);
    if (next != regions.begin() && std::prev(next)->first + std::prev(next)->second.bytes > memory)
        --next;
    while (next != regions.end() && next->first < memory + bytes) {
        munmap(next->second.cells, next->second.bytes * sizeof(Cell));
        next = regions.erase(next);
    }
}

static void watch(const void *memory, size_t bytes, bool shared) {
    const char *begin = static_cast<const char *>(memory);
    if (bytes == 0) return;
    auto known = regions.find(begin);
    if (known != regions.end() && known->second.bytes == bytes && known->second.shared && shared)
        return;
    forget(begin, bytes);
    void *cells = mmap(nullptr, bytes * sizeof(Cell), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells == MAP_FAILED) {
        perror("race detector");
        abort();
    }
    regions[begin] = {bytes, static_cast<Cell *>(cells), shared};
}

void note_allocation(void *memory, size_t bytes) {
    watch(memory, bytes, false);
}

void note_release(void *memory) {
    forget(static_cast<const char *>(memory), 1);
}

void race_launch_begins() {
    launch_begin = ++now;
}

void race_block_begins(const void *shared, size_t bytes, const void *variables,
                       size_t variable_bytes) {
    block_begin = ++now;
    memset(clocks, 0, sizeof clocks);
    for (auto &warp : clocks)
        for (unsigned l = 0; l < warp_size; l++) warp[l][l] = 1;
    watch(shared, bytes, true);
    watch(variables, variable_bytes, true);
}

void race_barrier() {
    now++;
}

void race_warp_barrier(unsigned warp, unsigned mask) {
    uint16_t joined[warp_size] = {};
    for (unsigned l = 0; l < warp_size; l++)
        for (unsigned other = 0; mask >> l & 1 && other < warp_size; other++)
            joined[other] = std::max(joined[other], clocks[warp][l][other]);
    for (unsigned l = 0; l < warp_size; l++) {
        if (!(mask >> l & 1)) continue;
        memcpy(clocks[warp][l], joined, sizeof joined);
        clocks[warp][l][l]++;
    }
}

void race_launch_ends() {
    if (!reported.empty()) kernel_fault("races, reported above");
    forget(reinterpret_cast<const char *>(block.shared), block.static_bytes + block.dynamic_bytes);
}

/* Prints the source line of an address in this library. */
static void print_line(uint32_t code) {
    Dl_info info;
    char command[1100], line[512];
    if (!dladdr(reinterpret_cast<void *>(race_barrier), &info)) return;
    snprintf(command, sizeof command, "addr2line -s -e '%.1000s' 0x%x", info.dli_fname, code - 1);
    FILE *pipe = popen(command, "r");
    if (!pipe) return;
    if (fgets(line, sizeof line, pipe)) fprintf(stderr, "%s", line);
    pclose(pipe);
}

static uint32_t offset_of(const void *code) {
    static const char *base = [] {
        Dl_info info = {};
        dladdr(reinterpret_cast<void *>(race_barrier), &info);
        return static_cast<const char *>(info.dli_fbase);
    }();
    return static_cast<uint32_t>(static_cast<const char *>(code) - base);
}

static void report(const char *what, const Region &region, size_t offset, const Event &event,
                   const Event *other) {
    if (!reported.insert({event.code, other ? other->code : 0}).second) return;
    if (reported.size() > reports_shown) return;
    fprintf(stderr, "%s: %s, block (%u, %u, %u), thread %u, byte %zu of %s memory, ", what,
            block.kernel->name, block.index.x, block.index.y, block.index.z, event.thread, offset,
            region.shared ? "shared" : "device");
    print_line(event.code);
    if (!other) return;
    fprintf(stderr, "    against thread %u of %s block, ", other->thread,
            other->epoch < block_begin ? "another" : "the same");
    print_line(other->code);
}

/* Could `event` and what the running thread does now happen in either order? */
static bool unordered(const Event &event, const Region &region, unsigned thread) {
    if (event.epoch < launch_begin) return false;
    if (event.epoch < block_begin) return !region.shared;
    if (event.epoch != now || event.thread == thread) return false;
    if (event.thread / warp_size != thread / warp_size) return true;
    return event.clock > clocks[thread / warp_size][thread % warp_size][event.thread % warp_size];
}

static void read_byte(Cell &cell, const Region &region, size_t offset, const Event &event) {
    if (region.shared && cell.write.epoch < block_begin)
        report("read of shared memory the block has not written", region, offset, event, nullptr);
    if (unordered(cell.write, region, event.thread))
        report("race: a read after a write", region, offset, event, &cell.write);
    bool same_reader = cell.reads[0].epoch == now && cell.reads[0].thread == event.thread;
    if (!same_reader) cell.reads[1] = cell.reads[0];
    cell.reads[0] = event;
}

static void write_byte(Cell &cell, const Region &region, size_t offset, const Event &event,
                       bool atomic) {
    if (atomic && region.shared && cell.write.epoch < block_begin)
        report("read of shared memory the block has not written", region, offset, event, nullptr);
    if (unordered(cell.write, region, event.thread) && !(atomic && cell.atomic))
        report("race: a write after a write", region, offset, event, &cell.write);
    for (const Event &read : cell.reads)
        if (unordered(read, region, event.thread))
            report("race: a write after a read", region, offset, event, &read);
    cell.write = event;
    cell.atomic = atomic;
}

void race_access(const volatile void *memory, size_t bytes, Access access, const void *code) {
    static bool busy; /* the detector's own templates may be the instrumented ones */
    const char *begin = static_cast<const char *>(const_cast<const void *>(memory));
    if (!block.current || busy) return;
    busy = true;
    auto next = regions.upper_bound(begin);
    if (next != regions.begin()) {
        const Region &region = std::prev(next)->second;
        size_t offset = static_cast<size_t>(begin - std::prev(next)->first);
        size_t end = std::min(region.bytes, offset + bytes);
        unsigned thread = block.current->number, l = thread % warp_size;
        Event event = {now, static_cast<uint16_t>(thread), clocks[thread / warp_size][l][l],
                       offset_of(code)};
        for (size_t i = offset; i < end; i++)
            if (access == Access::read)
                read_byte(region.cells[i], region, i, event);
            else
                write_byte(region.cells[i], region, i, event, access == Access::atomic);
    }
    busy = false;
}

} // namespace host

/* What the compiler calls. */
#define HOOK(name, bytes, access) \
    extern "C" void name(void *memory) { \
        host::race_access(memory, bytes, host::Access::access, __builtin_return_address(0)); \
    }
#define HOOKS(bytes) \
    HOOK(__tsan_read##bytes, bytes, read) \
    HOOK(__tsan_write##bytes, bytes, write) \
    HOOK(__tsan_unaligned_read##bytes, bytes, read) \
    HOOK(__tsan_unaligned_write##bytes, bytes, write) \
    HOOK(__tsan_volatile_read##bytes, bytes, read) \
    HOOK(__tsan_volatile_write##bytes, bytes, write)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

extern "C" void __tsan_read_range(void *memory, size_t bytes) {
    host::race_access(memory, bytes, host::Access::read, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void *memory, size_t bytes) {
    host::race_access(memory, bytes, host::Access::write, __builtin_return_address(0));
}
extern "C" void __tsan_init() {
}
extern "C" void __tsan_func_entry(void *) {
}
extern "C" void __tsan_func_exit() {
}

#define ATOMIC_HOOK(bits, T) \
    extern "C" T __tsan_atomic##bits##_fetch_add(volatile T *p, T value, int) { \
        host::race_access(p, sizeof(T), host::Access::atomic, __builtin_return_address(0)); \
        return std::exchange(*const_cast<T *>(p), static_cast<T>(*p + value)); \
    }
ATOMIC_HOOK(32, uint32_t)
ATOMIC_HOOK(64, uint64_t)

/* Static variables of inline functions are guarded by a byte of this kind. */
extern "C" uint8_t __tsan_atomic8_load(const volatile uint8_t *p, int) {
    return *p;
}

#else

namespace host {

void note_allocation(void *, size_t) {
}

void note_release(void *) {
}

} // namespace host

#endif

void host::note_access(const volatile void *memory, size_t bytes, Access access) {
    race_access(memory, bytes, access, __builtin_return_address(0));
}
