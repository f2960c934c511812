/* The tests of mma.c; those of formats that the chip does not have are skipped. */
#ifndef HEARTH_TESTS_CUDA_WRAPPERS_MMA_H
#define HEARTH_TESTS_CUDA_WRAPPERS_MMA_H

void test_mma_bf16(void **state);
void test_mma_e4m3(void **state);
void test_mma_mxfp8(void **state);
void test_mma_nvfp4(void **state);
void test_e4m3_codes(void **state);
void test_scaled_codes(void **state);

#endif
