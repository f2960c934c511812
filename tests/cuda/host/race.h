/* What the runtime tells the race detector; nothing in other modes. */
#ifndef TEST_CUDA_HOST_RACE_H
#define TEST_CUDA_HOST_RACE_H

#include "runtime.h"
#include "sanitizers.h"

namespace host {

#if TEST_RACE
void race_launch_begins();
/* Its shared memory has two parts: what the launch asked for, and the kernels' variables. */
void race_block_begins(const void *shared, size_t bytes, const void *variables,
                       size_t variable_bytes);
void race_barrier();                                  /* all threads of the block have met */
void race_warp_barrier(unsigned warp, unsigned mask); /* so have these lanes */
void race_launch_ends();                              /* aborts if anything was reported */
/* The running thread touches memory; `code` is where its kernel calls the runtime. */
void race_access(const volatile void *memory, size_t bytes, Access access, const void *code);
#else
inline void race_launch_begins() {
}
inline void race_block_begins(const void *, size_t, const void *, size_t) {
}
inline void race_barrier() {
}
inline void race_warp_barrier(unsigned, unsigned) {
}
inline void race_launch_ends() {
}
inline void race_access(const volatile void *, size_t, Access, const void *) {
}
#endif

} // namespace host

#endif
