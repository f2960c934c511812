/* Where device memory lies: in address space of its own, inaccessible while no work runs, in which every
 * allocation ends near an inaccessible page and no address is used twice. AddressSanitizer does better
 * inside a launch with what malloc() gives. */
#ifndef TEST_CUDA_ARENA_H
#define TEST_CUDA_ARENA_H

#include <cstddef>

namespace driver {

constexpr size_t device_alignment = 256;

/* Null when the machine has no more. */
void *arena_allocate(size_t bytes);
void arena_release(void *memory, size_t bytes);

/* Lets work at the memory, or nobody. */
void arena_protect(void *memory, size_t bytes, bool accessible);

/* Whether the address belongs to device memory, live or freed: false where that is not known. */
bool arena_contains(const void *address);

} // namespace driver

#endif
