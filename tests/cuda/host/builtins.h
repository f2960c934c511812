/* The functions and variables that CUDA C has and C++ has not, for kernels run on the CPU. */
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

/* Threads of one CPU core see each other's writes; the race detector takes no notice of a fence. */
inline void __threadfence() {
}
inline void __threadfence_block() {
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

template <class T> T __ldg(const T *p) {
    return *p;
}
template <class T> T __ldcs(const T *p) {
    return *p;
}
template <class T> T __ldcg(const T *p) {
    return *p;
}
template <class T> void __stcs(T *p, T value) {
    *p = value;
}
template <class T> void __stcg(T *p, T value) {
    *p = value;
}
template <class T> void __stwb(T *p, T value) {
    *p = value;
}

/* Integers only: a floating-point atomic would make results depend on the order of threads. */
template <class T> T atomicAdd(T *p, T value) {
    return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}
template <class T> T atomicOr(T *p, T value) {
    return __atomic_fetch_or(p, value, __ATOMIC_RELAXED);
}
template <class T> T atomicAnd(T *p, T value) {
    return __atomic_fetch_and(p, value, __ATOMIC_RELAXED);
}
template <class T> T atomicExch(T *p, T value) {
    return __atomic_exchange_n(p, value, __ATOMIC_RELAXED);
}
template <class T> T atomicCAS(T *p, T expected, T value) {
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
template <class T> T atomicMax(T *p, T value) {
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    return value > old ? atomicExch(p, value) : old;
}
template <class T> T atomicMin(T *p, T value) {
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    return value < old ? atomicExch(p, value) : old;
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
inline int __float_as_int(float x) {
    return host::reinterpret<int>(x);
}
inline float __uint_as_float(unsigned x) {
    return host::reinterpret<float>(x);
}
inline float __int_as_float(int x) {
    return host::reinterpret<float>(x);
}

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
/* Byte i of the result is the byte of b:a that nibble i of `selector` names. */
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}

template <class T> T min(T a, T b) {
    return b < a ? b : a;
}
template <class T> T max(T a, T b) {
    return a < b ? b : a;
}

inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fsub_rn(float a, float b) {
    return a - b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
inline float __expf(float x) {
    return expf(x);
}
inline float __logf(float x) {
    return logf(x);
}
inline float __saturatef(float x) {
    return x > 0 ? (x < 1 ? x : 1) : 0;
}
inline int __float2int_rn(float x) {
    return (int)rintf(x);
}
inline int __float2int_rd(float x) {
    return (int)floorf(x);
}

#endif
