/* The functions and variables that CUDA C has and C++ has not, for kernels run on the CPU: those that
 * kernels use so far. */
#ifndef TEST_CUDA_HOST_BUILTINS_H
#define TEST_CUDA_HOST_BUILTINS_H

#include <math.h>
#include <string.h>

#include "warp.h"

#define threadIdx (host::thread_index())
#define blockIdx (host::block_index())
#define blockDim (host::block_size())
#define gridDim (host::grid_size())
static constexpr int warpSize = 32;

/* ---- synchronisation ---- */

namespace host {
/* As the default of an argument: where the call stands. */
constexpr Site here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line, 0};
}
} // namespace host

#define __syncthreads() host::barrier({__FILE__, __LINE__, __COUNTER__})

inline void __syncwarp(unsigned mask = host::full_warp, host::Site site = host::here()) {
    host::warp_barrier(mask, site);
}

[[noreturn]] inline void __trap(host::Site site = host::here()) {
    host::kernel_fault("__trap()", site);
}

/* ---- warps ---- */

template <class T>
T __shfl_sync(unsigned mask, T value, int i, int width = 32, host::Site site = host::here()) {
    return host::shuffle_index(mask, value, (unsigned)i, (unsigned)width, site);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  host::Site site = host::here()) {
    return host::shuffle_xor(mask, value, (unsigned)bits, (unsigned)width, site);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                   host::Site site = host::here()) {
    return host::shuffle_down(mask, value, by, (unsigned)width, site);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32,
                 host::Site site = host::here()) {
    return host::shuffle_up(mask, value, by, (unsigned)width, site);
}

#define REDUCTION(name, Operator, T) \
    inline T name(unsigned mask, T value, host::Site site = host::here()) { \
        return host::reduce<host::Operator>(mask, value, site); \
    }
REDUCTION(__reduce_add_sync, Add, unsigned)
REDUCTION(__reduce_add_sync, Add, int)
REDUCTION(__reduce_min_sync, Minimum, unsigned)
REDUCTION(__reduce_min_sync, Minimum, int)
REDUCTION(__reduce_max_sync, Maximum, unsigned)
REDUCTION(__reduce_max_sync, Maximum, int)
REDUCTION(__reduce_and_sync, And, unsigned)
REDUCTION(__reduce_or_sync, Or, unsigned)
#undef REDUCTION

inline unsigned __ballot_sync(unsigned mask, int vote, host::Site site = host::here()) {
    return host::ballot(mask, vote != 0, site);
}

inline int __any_sync(unsigned mask, int vote, host::Site site = host::here()) {
    return host::ballot(mask, vote != 0, site) != 0;
}

inline int __all_sync(unsigned mask, int vote, host::Site site = host::here()) {
    return host::ballot(mask, vote == 0, site) == 0;
}

/* ---- memory ---- */

template <class T> void __stwb(T *p, T value) {
    *p = value;
}

/* Integers only: a floating-point atomic would make results depend on the order of threads. */
template <class T> T atomicAdd(T *p, T value) {
    return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}

/* ---- numbers ---- */

namespace host {
template <class To, class From> To reinterpret(From from) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace host

inline unsigned __float_as_uint(float x) {
    return host::reinterpret<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
    return host::reinterpret<float>(x);
}

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}

template <class T> T min(T a, T b) {
    return b < a ? b : a;
}
template <class T> T max(T a, T b) {
    return a < b ? b : a;
}

#endif
