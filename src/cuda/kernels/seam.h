/* The kernel seam: the one header that knows whether a .cu file is compiled for the device or for the host.
 *
 * Kernels are plain CUDA C. What is inline PTX, or cannot be said in C++, is a function here with two
 * bodies: one for nvcc below, one for the host in tests/cuda/host, which runs each thread of a block as
 * a fiber. The emulator is the definition that both are tested against. */
#ifndef HEARTH_CUDA_KERNELS_SEAM_H
#define HEARTH_CUDA_KERNELS_SEAM_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_bf16.h>

typedef __nv_bfloat16 Bf16;

#define FULL_WARP 0xffffffffu

#if defined(__CUDACC__)

#define DEVICE static __device__ __forceinline__

/* KERNEL(name, threads)(parameters) { body }, then EXPORT_KERNEL(name), which lets the host find it. */
#define KERNEL(name, threads) extern "C" __global__ void __launch_bounds__(threads) name
#define EXPORT_KERNEL(name)

/* The block's dynamic shared memory, aligned to 128 bytes. */
#define DYNAMIC_SHARED(Type, name) \
    extern __shared__ __align__(128) unsigned char dynamic_shared_memory[]; \
    Type *name = reinterpret_cast<Type *>(dynamic_shared_memory)

DEVICE uint32_t shared_address(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* Four 8x8 matrices of 16-bit elements: lanes 8i..8i+7 give the row addresses (16-byte aligned, shared
 * memory) of matrix i; register i of lane l gets elements (row l/4, columns 2(l%4), 2(l%4)+1) of it. */
DEVICE void load_matrix_x4(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* As load_matrix_x4(), of each matrix transposed. */
DEVICE void load_matrix_x4_transposed(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* d[16,8] += a[16,16] b[16,8] with the fragments of mma.m16n8k16 (PTX ISA, "Matrix Fragments"). */
DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* d[16,8] += a[16,32] b[32,8] in e4m3: sm_89 and later; traps elsewhere. */
DEVICE void mma_e4m3(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 890
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    __trap();
#endif
}

/* Set where this compilation's target has the block-scaled instructions (120f and its like). */
#if defined(__CUDA_ARCH_FEAT_SM120_ALL) || \
    (defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ == 1200)
#define HAS_BLOCK_SCALED_MMA 1
#else
#define HAS_BLOCK_SCALED_MMA 0
#endif

/* MXFP8: as mma_e4m3() with a ue8m0 scale for each row of a and column of b over its 32 k's. The scale
 * of row i is byte 0 of scale_a in lane 4(i%8) (i < 8) or 4(i%8)+1; of column j, of scale_b in lane 4j. */
DEVICE void mma_mxfp8(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      uint32_t scale_a, uint32_t scale_b) {
#if HAS_BLOCK_SCALED_MMA
    const uint16_t zero = 0;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
                 ".f32.e4m3.e4m3.f32.ue8m0 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, "
                 "{%10}, {%11,%11}, {%12}, {%11,%11};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scale_a),
                   "h"(zero), "r"(scale_b));
#else
    __trap();
#endif
}

/* NVFP4: d[16,8] += a[16,64] b[64,8] in e2m1 with a ue4m3 scale for each 16 k's: byte s of the scales
 * (lanes as in mma_mxfp8()) belongs to k = 16s..16s+15. */
DEVICE void mma_nvfp4(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      uint32_t scale_a, uint32_t scale_b) {
#if HAS_BLOCK_SCALED_MMA
    const uint16_t zero = 0;
    asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
                 ".f32.e2m1.e2m1.f32.ue4m3 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, "
                 "{%10}, {%11,%11}, {%12}, {%11,%11};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scale_a),
                   "h"(zero), "r"(scale_b));
#else
    __trap();
#endif
}

/* Starts copying 16 aligned bytes from global to shared memory; zeros, and no read, unless `valid`. */
DEVICE void copy_async16(void *shared, const void *global, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(shared)), "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
}

/* Closes a group of copies; all but the `N` latest groups have arrived after the wait. */
DEVICE void copy_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> DEVICE void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* 2^x within 2 ulp; denormal results are 0. */
DEVICE float exp2_approximate(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#else
#include "host/seam_host.h" /* tests/cuda */
#endif

#endif
