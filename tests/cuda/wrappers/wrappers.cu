/* One kernel for each function of the seam, of one warp: registers come from memory and go back to it, so
 * that a test can put every element where the PTX ISA says. */
#include "cuda/kernels/seam.h"

/* A lane's 4 registers of a and of d, and 2 of b. */
struct Fragments {
    uint32_t a[4], b[2];
    float d[4];
};

DEVICE Fragments load_fragments(const float *d, const uint32_t *a, const uint32_t *b) {
    int lane = threadIdx.x;
    Fragments f;
    for (int i = 0; i < 4; i++) f.a[i] = a[4 * lane + i];
    for (int i = 0; i < 2; i++) f.b[i] = b[2 * lane + i];
    for (int i = 0; i < 4; i++) f.d[i] = d[4 * lane + i];
    return f;
}

DEVICE void store_result(float *d, const Fragments &f) {
    for (int i = 0; i < 4; i++) d[4 * threadIdx.x + i] = f.d[i];
}

KERNEL(wrapper_mma_bf16, 32)(float *d, const uint32_t *a, const uint32_t *b) {
    Fragments f = load_fragments(d, a, b);
    mma_bf16(f.d, f.a, f.b);
    store_result(d, f);
}
EXPORT_KERNEL(wrapper_mma_bf16)

KERNEL(wrapper_mma_e4m3, 32)(float *d, const uint32_t *a, const uint32_t *b) {
    Fragments f = load_fragments(d, a, b);
    mma_e4m3(f.d, f.a, f.b);
    store_result(d, f);
}
EXPORT_KERNEL(wrapper_mma_e4m3)

KERNEL(wrapper_mma_mxfp8, 32)
(float *d, const uint32_t *a, const uint32_t *b, const uint32_t *scale_a, const uint32_t *scale_b) {
    Fragments f = load_fragments(d, a, b);
    mma_mxfp8(f.d, f.a, f.b, scale_a[threadIdx.x], scale_b[threadIdx.x]);
    store_result(d, f);
}
EXPORT_KERNEL(wrapper_mma_mxfp8)

KERNEL(wrapper_mma_nvfp4, 32)
(float *d, const uint32_t *a, const uint32_t *b, const uint32_t *scale_a, const uint32_t *scale_b) {
    Fragments f = load_fragments(d, a, b);
    mma_nvfp4(f.d, f.a, f.b, scale_a[threadIdx.x], scale_b[threadIdx.x]);
    store_result(d, f);
}
EXPORT_KERNEL(wrapper_mma_nvfp4)

/* Row r (of 32) of the four matrices lies at shared[row_of[r]], in rows of 16 elements. */
KERNEL(wrapper_load_matrix, 32)
(uint32_t *plain, uint32_t *transposed, const uint16_t *elements, const int *row_of) {
    __shared__ __align__(16) uint16_t shared[64 * 16];
    int lane = threadIdx.x;
    for (int i = lane; i < 64 * 16; i += 32) shared[i] = elements[i];
    __syncthreads();
    uint32_t r[4];
    load_matrix_x4(r, shared + 16 * row_of[lane]);
    for (int i = 0; i < 4; i++) plain[4 * lane + i] = r[i];
    load_matrix_x4_transposed(r, shared + 16 * row_of[lane]);
    for (int i = 0; i < 4; i++) transposed[4 * lane + i] = r[i];
}
EXPORT_KERNEL(wrapper_load_matrix)

/* Lanes below `valid` copy 16 bytes each; the others fill theirs with zeros, and `in` ends before them. */
KERNEL(wrapper_copy_async, 32)(uint4 *out, const uint4 *in, int valid) {
    DYNAMIC_SHARED(uint4, shared);
    int lane = threadIdx.x;
    copy_async16(shared + lane, in + lane, lane < valid);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    out[lane] = shared[31 - lane];
}
EXPORT_KERNEL(wrapper_copy_async)

/* Three groups, of one, two and one copies; out[group][lane] is taken as soon as the group has arrived. */
KERNEL(wrapper_copy_groups, 32)(uint4 *out, const uint4 *in) {
    __shared__ uint4 shared[4 * 32];
    int lane = threadIdx.x;
    copy_async16(shared + lane, in + lane, true);
    copy_async_commit();
    copy_async16(shared + 32 + lane, in + 32 + lane, true);
    copy_async16(shared + 64 + lane, in + 64 + lane, true);
    copy_async_commit();
    copy_async16(shared + 96 + lane, in + 96 + lane, true);
    copy_async_commit();
    copy_async_wait<2>();
    out[lane] = shared[lane];
    copy_async_wait<1>();
    out[32 + lane] = shared[32 + lane];
    out[64 + lane] = shared[64 + lane];
    copy_async_wait<0>();
    out[96 + lane] = shared[96 + lane];
}
EXPORT_KERNEL(wrapper_copy_groups)

KERNEL(wrapper_exp2, 32)(float *out, const float *in, int count) {
    for (int i = threadIdx.x; i < count; i += 32) out[i] = exp2_approximate(in[i]);
}
EXPORT_KERNEL(wrapper_exp2)

/* Not of the seam, but the host's bodies of these are ours too: out[k][lane] for the k-th line. */
KERNEL(wrapper_warp, 32)(int *out, const int *in) {
    int lane = threadIdx.x, x = in[lane];
    bool odd = x & 1;
    out[0 * 32 + lane] = __shfl_sync(FULL_WARP, x, 5);
    out[1 * 32 + lane] = __shfl_sync(FULL_WARP, x, 3, 8);
    out[2 * 32 + lane] = __shfl_xor_sync(FULL_WARP, x, 17);
    out[3 * 32 + lane] = __shfl_xor_sync(FULL_WARP, x, 5, 8);
    out[4 * 32 + lane] = __shfl_down_sync(FULL_WARP, x, 3);
    out[5 * 32 + lane] = __shfl_down_sync(FULL_WARP, x, 3, 8);
    out[6 * 32 + lane] = __shfl_up_sync(FULL_WARP, x, 3);
    out[7 * 32 + lane] = __shfl_up_sync(FULL_WARP, x, 3, 8);
    out[8 * 32 + lane] = __reduce_add_sync(FULL_WARP, x);
    out[9 * 32 + lane] = __reduce_min_sync(FULL_WARP, x);
    out[10 * 32 + lane] = __reduce_max_sync(FULL_WARP, x);
    out[11 * 32 + lane] = (int)__ballot_sync(FULL_WARP, odd);
    out[12 * 32 + lane] = __any_sync(FULL_WARP, x > 1000);
    out[13 * 32 + lane] = __all_sync(FULL_WARP, x < 1000);
    unsigned own_half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    out[14 * 32 + lane] = __reduce_add_sync(own_half, x);
    out[15 * 32 + lane] = __shfl_xor_sync(own_half, x, 1);
}
EXPORT_KERNEL(wrapper_warp)
