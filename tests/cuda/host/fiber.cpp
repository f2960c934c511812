#include "fiber.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <sys/mman.h>

#include "sanitizers.h"

#if TEST_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* Saves the callee-saved registers on the stack, the stack pointer in *save, and continues at `to`. */
extern "C" void test_fiber_switch(void **save, void *to);

#if defined(__x86_64__)

asm(R"(
    .text
    .hidden test_fiber_switch
    .globl test_fiber_switch
    .type test_fiber_switch, @function
test_fiber_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size test_fiber_switch, .-test_fiber_switch
)");

/* A stack as the switch leaves it: six registers, then where to return to, then alignment. */
static void *first_frame(char *top, void (*entry)()) {
    void **frame = reinterpret_cast<void **>(top) - 8;
    memset(frame, 0, 8 * sizeof *frame);
    frame[6] = reinterpret_cast<void *>(entry);
    return frame;
}

#elif defined(__aarch64__)

asm(R"(
    .text
    .hidden test_fiber_switch
    .globl test_fiber_switch
    .type test_fiber_switch, @function
test_fiber_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size test_fiber_switch, .-test_fiber_switch
)");

/* A stack as the switch leaves it; x30 (the 12th register) is where to return to. */
static void *first_frame(char *top, void (*entry)()) {
    void **frame = reinterpret_cast<void **>(top - 160);
    memset(frame, 0, 160);
    frame[11] = reinterpret_cast<void *>(entry);
    return frame;
}

#else
#error "fibers: write the switch for this CPU"
#endif

namespace host {

/* The sanitizers' frames are larger. */
static constexpr size_t stack_bytes = (TEST_ASAN || TEST_MSAN ? 512 : 128) << 10;
static constexpr size_t guard_bytes = 4096;

Fiber *fiber_create(void (*entry)()) {
    void *memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0) {
        perror("cannot allocate a fiber's stack");
        abort();
    }
    char *stack = static_cast<char *>(memory) + guard_bytes;
    return new Fiber{first_frame(stack + stack_bytes, entry), stack, stack_bytes, nullptr};
}

Fiber *fiber_of_caller() {
    static thread_local Fiber fiber;
    if (!fiber.stack) {
        pthread_attr_t attributes;
        void *stack;
        pthread_getattr_np(pthread_self(), &attributes);
        pthread_attr_getstack(&attributes, &stack, &fiber.stack_bytes);
        pthread_attr_destroy(&attributes);
        fiber.stack = static_cast<char *>(stack);
    }
    return &fiber;
}

void fiber_switch(Fiber *from, Fiber *to) {
#if TEST_ASAN
    __sanitizer_start_switch_fiber(&from->asan_stack, to->stack, to->stack_bytes);
#endif
    test_fiber_switch(&from->stack_pointer, to->stack_pointer);
#if TEST_ASAN
    __sanitizer_finish_switch_fiber(from->asan_stack, nullptr, nullptr);
#endif
}

void fiber_started() {
#if TEST_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

} // namespace host
