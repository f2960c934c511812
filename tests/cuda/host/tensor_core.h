/* mma.sync and ldmatrix. Where the elements of a matrix lie among a warp's registers is written here
 * once, as the PTX ISA defines it ("Matrix Fragments for mma"). */
#ifndef TEST_CUDA_HOST_TENSOR_CORE_H
#define TEST_CUDA_HOST_TENSOR_CORE_H

#include "runtime.h"

namespace host {

struct Place {
    unsigned row, column;
};

/* Element `e` of register `r`, when a register holds `per` elements, of a[16, 8 per]. */
constexpr Place place_a(unsigned lane, unsigned r, unsigned e, unsigned per) {
    return {lane / 4 + r % 2 * 8, lane % 4 * per + e + r / 2 * 4 * per};
}

/* The same of b[8 per, 8]. */
constexpr Place place_b(unsigned lane, unsigned r, unsigned e, unsigned per) {
    return {lane % 4 * per + e + r * 4 * per, lane / 4};
}

/* Register `r` of d[16, 8]. */
constexpr Place place_d(unsigned lane, unsigned r) {
    return {lane / 4 + r / 2 * 8, lane % 4 * 2 + r % 2};
}

/* The lane whose scale belongs to a row of a, or to a column of b, when both selectors are 0. */
constexpr unsigned scale_lane_a(unsigned row) {
    return row % 8 * 4 + row / 8;
}

constexpr unsigned scale_lane_b(unsigned column) {
    return column * 4;
}

/* 16-bit element `e` of a lane's register, of an 8x8 matrix that ldmatrix loads. */
constexpr Place place_loaded(unsigned lane, unsigned e) {
    return {lane / 4, lane % 4 * 2 + e};
}

/* Registers by their first: a of 4, b of 2, d of 4. Products are summed in fp32 from the first k to the
 * last, then added to d; block-scaled ones are summed in fp64. Hardware rounds in its own way. */
void mma_bf16(float *d, const uint32_t *a, const uint32_t *b, Site site);
void mma_e4m3(float *d, const uint32_t *a, const uint32_t *b, Site site);
void mma_mxfp8(float *d, const uint32_t *a, const uint32_t *b, uint32_t scale_a, uint32_t scale_b,
               Site site);
void mma_nvfp4(float *d, const uint32_t *a, const uint32_t *b, uint32_t scale_a, uint32_t scale_b,
               Site site);

/* Four matrices; `row`: this lane's row address. */
void load_matrix_x4(uint32_t *r, const void *row, bool transposed, Site site);

} // namespace host

#endif
