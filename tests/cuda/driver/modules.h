#ifndef TEST_CUDA_MODULES_H
#define TEST_CUDA_MODULES_H

#include "driver.h"
#include "host/runtime.h"

/* A kernel of a loaded module. */
struct CUfunc_st {
    CUmodule module = nullptr;
    const host::Kernel *kernel = nullptr;
    unsigned dynamic_shared = 49152; /* bytes that a launch may ask for */
};

namespace driver {

/* Ends the program unless it is a function of a module that is loaded. */
void check_function(CUfunction function);

} // namespace driver

#endif
