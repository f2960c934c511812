#include "arena.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

#include "driver.h"

namespace driver {

#ifdef __SANITIZE_ADDRESS__

void *arena_allocate(size_t bytes) {
    void *memory;
    return posix_memalign(&memory, device_alignment, bytes) ? nullptr : memory;
}

void arena_release(void *memory, size_t) {
    free(memory);
}

void arena_protect(void *, size_t, bool) {
}

bool arena_contains(const void *) {
    return false;
}

#else

constexpr size_t page = 4096, space = size_t{1} << 40;
static uintptr_t start, used;

static size_t pages(size_t bytes) {
    return (bytes + page - 1) / page * page;
}

static struct sigaction before;

/* A message for what would be a plain crash; anything else goes to who was there before. */
static void touched(int signal, siginfo_t *information, void *) {
    if (arena_contains(information->si_addr)) {
        fprintf(stderr,
                "test driver: device memory at %p was touched outside its allocation, after it was "
                "freed, or by "
                "the program itself\n",
                information->si_addr);
    }
    sigaction(signal, &before, nullptr);
}

static void reserve() {
    void *memory =
        mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) die("no address space for device memory");
    start = used = reinterpret_cast<uintptr_t>(memory);
    struct sigaction action = {};
    action.sa_sigaction = touched;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before);
}

void *arena_allocate(size_t bytes) {
    if (!start) reserve();
    size_t aligned = (bytes + device_alignment - 1) / device_alignment * device_alignment;
    uintptr_t end = used + page + pages(bytes);
    if (end + page > start + space) die("device memory has used up its address space");
    used = end;
    void *memory = reinterpret_cast<void *>(end - aligned);
    arena_protect(memory, bytes, true);
    return memory;
}

static void *first_page(void *memory) {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(memory) / page * page);
}

void arena_release(void *memory, size_t bytes) {
    arena_protect(memory, bytes, false);
    madvise(first_page(memory), pages(bytes), MADV_DONTNEED);
}

void arena_protect(void *memory, size_t bytes, bool accessible) {
    mprotect(first_page(memory), pages(bytes), accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
}

bool arena_contains(const void *address) {
    uintptr_t place = reinterpret_cast<uintptr_t>(address);
    return start && place >= start && place < used + page;
}

#endif

} // namespace driver
