/* Runs decoded kernels. */
#ifndef TEST_CUDA_PTX_RUN_H
#define TEST_CUDA_PTX_RUN_H

#include "instruction.h"

namespace ptx {

/* What each thread of a block does. parameters: the address of each. */
void run(const DecodedKernel &kernel, void **parameters);

} // namespace ptx

#endif
