#include "modules.h"

#include <cstdlib>
#include <string>

#include "context.h"
#include "image.h"
#include "ptx/ptx.h"
#include "streams.h"

struct CUmod_st {
    driver::Code code;
    std::map<std::string, CUfunction> functions;
};

namespace driver {

static Handles<CUmod_st> modules("module");
static Handles<CUfunc_st> functions("function");

void check_function(CUfunction function) {
    functions.check(function);
    modules.check(function->module);
}

/* What runs when a kernel of this name is launched. */
static const host::Kernel *find_kernel(const char *name) {
    const char *directory = getenv("TEST_GPU_PTX");
    if (!directory) return host::find_kernel(name);
    static std::string error;
    static bool loaded = ptx::load(directory, error);
    if (!loaded) die("TEST_GPU_PTX: %s", error.c_str());
    return ptx::find(name);
}

void report_module_leaks() {
    report_leak(modules.count(), "module");
}

} // namespace driver

using namespace driver;

API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    Call call(__func__);
    TRY(ready());
    TRY(need_no_capture());
    if (fault_of("driver", 12))
        return refuse(CUDA_ERROR_INVALID_IMAGE, "made for CUDA 13, which TEST_GPU_FAULT forbids");
    Code code;
    TRY(choose_code(image, chip(), code));
    if (code.is_ptx) log_line("compile %zu", code.bytes.size());
    *module = modules.create();
    (*module)->code = std::move(code);
    return CUDA_SUCCESS;
}

API CUresult cuModuleUnload(CUmodule module) {
    Call call(__func__);
    TRY(ready());
    TRY(need_no_capture());
    modules.destroy(modules.check(module));
    return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    Call call(__func__);
    TRY(ready());
    modules.check(module);
    if (!module->code.has_kernel(name)) return CUDA_ERROR_NOT_FOUND; /* one may ask */
    CUfunction &found = module->functions[name];
    if (!found) {
        found = functions.create();
        found->module = module;
        found->kernel = find_kernel(name);
        if (!found->kernel)
            die("kernel %s is in the image, and the test driver was built without it", name);
    }
    *function = found;
    return CUDA_SUCCESS;
}
