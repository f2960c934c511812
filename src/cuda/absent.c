/* In place of the backend where the CUDA toolkit was not there when hearth was built. */
#include "cuda/backend.h"
#include "cuda/beside.h"
#include "cuda/report.h"
#include "cuda/workspace.h"

bool cuda_present(Error *why_not) {
    return fail(why_not, "this build of hearth has no GPU kernels: NVIDIA's nvcc 13 was not there; "
                         "install the CUDA toolkit, build again, or use --device cpu");
}

void cuda_report(CudaReport *report) {
    *report = (CudaReport){.memory = -1, .memory_free = -1};
    cuda_present(&report->no_driver);
}

static bool describe(Device *device, Dtype storage, Error *error) {
    (void)device, (void)storage;
    return cuda_present(error);
}

static bool measure(Device *device, Dtype storage, int64_t memory, Error *error) {
    (void)device, (void)storage, (void)memory;
    return cuda_present(error);
}

static Executor *open_executor(const Program *program, Error *error) {
    (void)program;
    cuda_present(error);
    return NULL;
}

const Backend backend_cuda = {.name = "cuda",
                              .workspace = cuda_workspace,
                              .beside = cuda_beside,
                              .describe = describe,
                              .measure = measure,
                              .open = open_executor};
