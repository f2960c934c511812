/* The table of this instance. */
#include "cpu/kernels/instance.h"

#define TEXT(name) #name
#define EXPANDED_TEXT(name) TEXT(name)
#define ROW(name) .name = KERNEL(name),

extern const CpuKernels KERNEL(kernels);
const CpuKernels KERNEL(kernels) = {.isa = EXPANDED_TEXT(KERNEL_ISA),
                                    .storage = KERNEL_BF16 ? DTYPE_BF16 : DTYPE_F32,
                                    KERNEL_LIST(ROW)};
