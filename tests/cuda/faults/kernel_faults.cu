/* Each kernel reverses the 64 numbers of its block, or means to: it has one fault, of a kind that passes on
 * some GPU on some day. test_kernel_faults.cpp says which modes find it; the last kernels have none. */
#include "cuda/kernels/seam.h"

/* `in` and `out` hold n numbers, `scratch` n that nobody has written. */
struct Arrays {
    float *out;
    const float *in;
    float *scratch;
    int n;
};

/* The place of this thread in its block, and in the arrays. */
DEVICE int place() {
    return (int)threadIdx.x;
}

DEVICE int here() {
    return 64 * (int)blockIdx.x + place();
}

/* The number that belongs here. */
DEVICE float reversed(Arrays a) {
    return a.in[here() - place() + 63 - place()];
}

/* ---- barriers ---- */

KERNEL(no_barrier, 64)(Arrays a) {
    __shared__ float s[64];
    s[place()] = a.in[here()];
    a.out[here()] = s[63 - place()];
}
EXPORT_KERNEL(no_barrier)

/* The second use of the array begins while others are still reading the first. */
KERNEL(no_barrier_between_uses, 64)(Arrays a) {
    __shared__ float s[64];
    float result = 0;
    for (int k = 0; k < 2; k++) {
        s[place()] = a.in[here()] * (float)(2 * k - 1);
        __syncthreads();
        result += (float)(k + 1) * s[63 - place()];
    }
    a.out[here()] = result; /* -x + 2 x */
}
EXPORT_KERNEL(no_barrier_between_uses)

KERNEL(different_barriers, 64)(Arrays a) {
    __shared__ float s[64];
    s[place()] = a.in[here()];
    if (place() < 32)
        __syncthreads();
    else
        __syncthreads();
    a.out[here()] = s[63 - place()];
}
EXPORT_KERNEL(different_barriers)

KERNEL(barrier_after_exit, 64)(Arrays a) {
    __shared__ float s[64];
    s[63 - place()] = a.in[here()];
    if (place() >= 61) a.out[here()] = a.in[here() - 2 * place() + 63];
    if (place() >= 61) return;
    __syncthreads();
    a.out[here()] = s[place()];
}
EXPORT_KERNEL(barrier_after_exit)

KERNEL(no_barrier_in_warp, 64)(Arrays a) {
    __shared__ float s[64];
    s[place()] = a.in[here() - 2 * place() + 63];
    float other = s[place() ^ 1];
    __syncwarp();
    s[place() ^ 1] = other;
    __syncwarp();
    a.out[here()] = s[place()];
}
EXPORT_KERNEL(no_barrier_in_warp)

/* ---- addresses ---- */

KERNEL(past_shared, 64)(Arrays a) {
    __shared__ float s[64];
    s[place() + 1] = reversed(a);
    a.out[here()] = s[place() + 1];
}
EXPORT_KERNEL(past_shared)

KERNEL(past_dynamic_shared, 64)(Arrays a) {
    DYNAMIC_SHARED(float, s);
    s[place() + 1] = reversed(a);
    a.out[here()] = s[place() + 1];
}
EXPORT_KERNEL(past_dynamic_shared)

KERNEL(past_output, 64)(Arrays a) {
    a.out[here() + 1] = 0;
    __syncthreads();
    a.out[here()] = reversed(a);
}
EXPORT_KERNEL(past_output)

KERNEL(before_input, 64)(Arrays a) {
    float before = a.in[here() - 1];
    a.out[here()] = before == -1 ? 0 : reversed(a);
}
EXPORT_KERNEL(before_input)

KERNEL(misaligned_vector, 64)(Arrays a) {
    float4 four = *reinterpret_cast<const float4 *>(a.in + (place() < 60 ? 63 - place() - 3 : 0));
    a.out[here()] = place() < 60 && here() < 64 ? four.w : reversed(a);
}
EXPORT_KERNEL(misaligned_vector)

/* 32 bits do not hold the index, which happens to be taken modulo 2^32. */
KERNEL(index_overflow, 64)(Arrays a) {
    int far = a.n << 24;
    int index = far + here() * 0x40000000 / 0x40000000;
    a.out[here()] = index == 12345 ? 0 : reversed(a);
}
EXPORT_KERNEL(index_overflow)

/* ---- memory that nobody has written ---- */

KERNEL(unwritten_shared, 64)(Arrays a) {
    __shared__ float s[64];
    if (place() != 5) s[place()] = 1;
    __syncthreads();
    a.out[here()] = s[63 - place()] == 3 ? 0 : reversed(a);
}
EXPORT_KERNEL(unwritten_shared)

KERNEL(unwritten_device, 64)(Arrays a) {
    a.out[here()] = a.scratch[here()] == 3 ? 0 : reversed(a);
}
EXPORT_KERNEL(unwritten_device)

KERNEL(unwritten_register, 64)(Arrays a) {
    float sums[4];
    for (int k = 1; k < a.n / 32; k++) sums[k] = 0; /* from 0, it should be */
    a.out[here()] = sums[a.n / 64 - 2] == 3 ? 0 : reversed(a);
}
EXPORT_KERNEL(unwritten_register)

/* Shared memory keeps nothing from one block to the next. */
KERNEL(shared_of_another_block, 64)(Arrays a) {
    __shared__ float s[64];
    if (blockIdx.x == 0) s[place()] = 0;
    __syncthreads();
    a.out[here()] = reversed(a) + s[place()];
}
EXPORT_KERNEL(shared_of_another_block)

/* ---- warps ---- */

KERNEL(shuffle_in_branch, 64)(Arrays a) {
    float x = reversed(a);
    if (place() & 1) x += 0 * __shfl_xor_sync(FULL_WARP, x, 2);
    a.out[here()] = x;
}
EXPORT_KERNEL(shuffle_in_branch)

KERNEL(different_collectives, 64)(Arrays a) {
    float x = 0;
    if (place() & 1)
        x = __shfl_xor_sync(FULL_WARP, 0.0f, 2);
    else
        x = (float)__ballot_sync(FULL_WARP, 0);
    a.out[here()] = reversed(a) + x;
}
EXPORT_KERNEL(different_collectives)

KERNEL(mask_without_the_caller, 64)(Arrays a) {
    a.out[here()] = __shfl_xor_sync(0x7fffffffu, reversed(a), 0);
}
EXPORT_KERNEL(mask_without_the_caller)

KERNEL(mma_without_a_lane, 64)(Arrays a) {
    uint32_t x[4] = {0, 0, 0, 0}, y[2] = {0, 0};
    float d[4] = {0, 0, 0, 0};
    a.out[here()] = reversed(a);
    if (place() == 40) return;
    mma_bf16(d, x, y);
    a.out[here()] += d[0];
}
EXPORT_KERNEL(mma_without_a_lane)

KERNEL(matrix_row_misaligned, 64)(Arrays a) {
    __shared__ __align__(16) uint32_t s[64 * 5];
    for (int k = place(); k < 64 * 5; k += 64) s[k] = 0;
    __syncthreads();
    uint32_t r[4];
    load_matrix_x4(r, s + 5 * place());
    a.out[here()] = reversed(a) + (float)r[0];
}
EXPORT_KERNEL(matrix_row_misaligned)

/* ---- cp.async: 16 threads copy the block's numbers ---- */

DEVICE void copy_block(float *s, Arrays a) {
    if (place() < 16) copy_async16(s + 4 * place(), a.in + here() + 3 * place(), true);
    copy_async_commit();
}

KERNEL(copy_not_awaited, 64)(Arrays a) {
    __shared__ __align__(16) float s[64];
    copy_block(s, a);
    __syncthreads();
    a.out[here()] = s[63 - place()];
}
EXPORT_KERNEL(copy_not_awaited)

KERNEL(copy_of_a_later_group, 64)(Arrays a) {
    __shared__ __align__(16) float s[2][64];
    copy_block(s[0], a);
    copy_block(s[1], a);
    copy_async_wait<1>();
    __syncthreads();
    a.out[here()] = s[1][63 - place()];
}
EXPORT_KERNEL(copy_of_a_later_group)

/* Each waits for its own copies, and reads those of others. */
KERNEL(copy_without_barrier, 64)(Arrays a) {
    __shared__ __align__(16) float s[64];
    copy_block(s, a);
    copy_async_wait<0>();
    a.out[here()] = s[63 - place()];
}
EXPORT_KERNEL(copy_without_barrier)

/* The stage is filled again while others still read it. */
KERNEL(copy_too_early, 64)(Arrays a) {
    __shared__ __align__(16) float s[64];
    float x = 0;
    for (int k = 0; k < 2; k++) {
        copy_block(s, a);
        copy_async_wait<0>();
        __syncthreads();
        x = s[63 - place()];
    }
    a.out[here()] = x;
}
EXPORT_KERNEL(copy_too_early)

/* The last row's tail is copied too, where zeros were wanted. */
KERNEL(copy_past_input, 64)(Arrays a) {
    __shared__ __align__(16) float s[128];
    for (int k = 0; k < 2; k++)
        if (place() < 16)
            copy_async16(s + 64 * k + 4 * place(), a.in + 64 * k + here() + 3 * place(), true);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    a.out[here()] = s[63 - place()];
}
EXPORT_KERNEL(copy_past_input)

/* ---- blocks ---- */

KERNEL(sum_of_blocks, 64)(Arrays a) {
    if (place() == 0) a.out[0] = 1 + a.in[63];
    a.out[here()] = here() == 0 ? a.in[63] : reversed(a);
}
EXPORT_KERNEL(sum_of_blocks)

/* The numbers of the next block, from where it has put them. */
KERNEL(result_of_another_block, 64)(Arrays a) {
    a.out[here()] = reversed(a);
    int other = (here() + 64) % a.n;
    if (a.out[other] == 12345) a.out[here()] = 0;
}
EXPORT_KERNEL(result_of_another_block)

/* ---- without a fault ---- */

KERNEL(right_barriers, 64)(Arrays a) {
    __shared__ float s[64];
    DYNAMIC_SHARED(float, d);
    for (int k = 0; k < 3; k++) {
        s[place()] = a.in[here()];
        d[place()] = s[place()];
        __syncthreads();
        a.out[here()] = d[63 - place()] + 0 * s[63 - place()];
        __syncthreads();
    }
}
EXPORT_KERNEL(right_barriers)

KERNEL(right_warps, 64)(Arrays a) {
    __shared__ float s[64];
    s[place()] = a.in[here()];
    __syncwarp();
    float x = s[place() ^ 31];
    __syncwarp();
    s[place()] = x;
    __syncthreads();
    a.out[here()] = s[place() ^ 32];
}
EXPORT_KERNEL(right_warps)

KERNEL(right_copies, 64)(Arrays a) {
    __shared__ __align__(16) float s[2][64];
    float x = 0;
    copy_block(s[0], a);
    for (int k = 0; k < 4; k++) {
        copy_block(s[(k + 1) % 2], a);
        copy_async_wait<1>();
        __syncthreads();
        x = s[k % 2][63 - place()];
        __syncthreads();
    }
    copy_async_wait<0>();
    a.out[here()] = x;
}
EXPORT_KERNEL(right_copies)

/* All threads count in one place of the block and in one of the grid. */
KERNEL(right_atomics, 64)(Arrays a) {
    __shared__ unsigned count;
    if (place() == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1u);
    atomicAdd(reinterpret_cast<unsigned *>(a.scratch), 0u);
    __syncthreads();
    a.out[here()] = reversed(a) * (float)(count / 64);
}
EXPORT_KERNEL(right_atomics)
