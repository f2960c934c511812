/* The host half of cuda/kernels/seam.h: kernels as functions that tests/cuda/host runs on the CPU. */
#ifndef TEST_CUDA_HOST_SEAM_HOST_H
#define TEST_CUDA_HOST_SEAM_HOST_H

#include <float.h>

#include <utility>

#include <vector_functions.h>
#include <vector_types.h>

#include "builtins.h"
#include "tensor_core.h"

/* CUDA's headers define these for a compiler they do not know. */
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#undef __shared__
#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
/* A section, whose ends the linker names: AddressSanitizer takes it with -fsanitize-sections. */
#define __shared__ static __attribute__((section("shared_memory")))

#define DEVICE static inline __attribute__((always_inline))

#define KERNEL(name, threads) \
    static constexpr unsigned name##_threads = threads; \
    extern "C" void name
#define EXPORT_KERNEL(name) \
    static const host::Registration name##_registration(#name, __FILE__, name##_threads, name);

#define DYNAMIC_SHARED(Type, name) Type *name = reinterpret_cast<Type *>(host::dynamic_shared())

namespace host {

struct Registration {
    template <class... P>
    Registration(const char *name, const char *file, unsigned threads, void (*code)(P...)) {
        auto run = [code](void **parameters) {
            call(code, parameters, std::index_sequence_for<P...>());
        };
        kernels().push_back({name, file, {(unsigned)sizeof(P)...}, threads, run});
    }

  private:
    template <class... P, size_t... i>
    static void call(void (*code)(P...), void **parameters, std::index_sequence<i...>) {
        code(*static_cast<std::remove_const_t<P> *>(parameters[i])...);
    }
};

} // namespace host

DEVICE void load_matrix_x4(uint32_t (&r)[4], const void *row, host::Site site = host::here()) {
    host::load_matrix_x4(r, row, false, site);
}

DEVICE void load_matrix_x4_transposed(uint32_t (&r)[4], const void *row,
                                      host::Site site = host::here()) {
    host::load_matrix_x4(r, row, true, site);
}

DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     host::Site site = host::here()) {
    host::mma_bf16(d, a, b, site);
}

DEVICE void mma_e4m3(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     host::Site site = host::here()) {
    host::mma_e4m3(d, a, b, site);
}

DEVICE void mma_mxfp8(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      uint32_t scale_a, uint32_t scale_b, host::Site site = host::here()) {
    host::mma_mxfp8(d, a, b, scale_a, scale_b, site);
}

DEVICE void mma_nvfp4(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      uint32_t scale_a, uint32_t scale_b, host::Site site = host::here()) {
    host::mma_nvfp4(d, a, b, scale_a, scale_b, site);
}

DEVICE void copy_async16(void *shared, const void *global, bool valid,
                         host::Site site = host::here()) {
    host::copy_async16(shared, global, valid, site);
}

DEVICE void copy_async_commit() {
    host::copy_async_commit();
}

template <int N> DEVICE void copy_async_wait() {
    host::copy_async_wait(N);
}

DEVICE float exp2_approximate(float x) {
    float y = exp2f(x);
    return y < FLT_MIN ? 0.0f : y;
}

#endif
