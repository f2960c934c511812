#include "cuda/scalars.h"
#include "seam.h"

/* Puts a step's scalars into device memory, in the order of the stream: passed by value, they need no host
 * memory that must stay untouched until a copy is done. */
KERNEL(set_scalars, 32)(CudaScalars value, CudaScalars *to) {
    if (threadIdx.x == 0) *to = value;
}
EXPORT_KERNEL(set_scalars)
