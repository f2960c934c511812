/* Reads the images that nvcc makes, as far as a driver must to say whether one has code for its chip. */
#ifndef TEST_CUDA_IMAGE_H
#define TEST_CUDA_IMAGE_H

#include <string>
#include <vector>

#include <cuda.h>

#include "chips.h"

namespace driver {

/* The code of an image that a chip takes. */
struct Code {
    bool is_ptx;
    std::vector<char> bytes; /* ELF, or PTX */

    bool has_kernel(const std::string &name) const;
};

/* data: a fat binary. CUDA_ERROR_INVALID_IMAGE, or CUDA_ERROR_NO_BINARY_FOR_GPU. */
CUresult choose_code(const void *data, const Chip &chip, Code &code);

} // namespace driver

#endif
