/* Fibers: stacks that one thread of the CPU switches between. */
#ifndef TEST_CUDA_HOST_FIBER_H
#define TEST_CUDA_HOST_FIBER_H

#include <cstddef>

namespace host {

struct Fiber {
    void *stack_pointer; /* where it stopped */
    char *stack;
    size_t stack_bytes;
    void *asan_stack; /* AddressSanitizer's own */
};

/* A fiber that starts in entry(), which never returns. Fibers live as long as the program. */
Fiber *fiber_create(void (*entry)());
/* For the stack that calls it, to be switched back to. */
Fiber *fiber_of_caller();
void fiber_switch(Fiber *from, Fiber *to);
/* To be called first thing in entry(). */
void fiber_started();

} // namespace host

#endif
