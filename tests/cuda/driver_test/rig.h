/* For the tests of the test driver: a scenario is a small host program. It runs in a process of its own, with
 * an environment of its own, so that the driver may end it. */
#ifndef HEARTH_TESTS_CUDA_RIG_H
#define HEARTH_TESTS_CUDA_RIG_H

#include "cuda/driver.h"
#include "support.h"

/* What a scenario starts from: an open driver with its context, a module of probe kernels, two streams. */
typedef struct Rig {
    CudaDriver cuda;
    CublasLt cublaslt;
    CUcontext context;
    CUmodule module;
    CUfunction add; /* driver_probe_add */
    CUstream stream, other;
} Rig;

/* Returns whether what it computed is right. A call that fails unexpectedly ends it (DO). */
typedef bool Scenario(Rig *rig);

typedef enum Ending { RIGHT, WRONG, CALL_FAILED, DIED } Ending;

typedef struct Outcome {
    Ending ending;
    char text[8192]; /* what it wrote to stderr */
} Outcome;

/* Runs a scenario with these variables ("TEST_GPU_SEED=2", separated by blanks; may be NULL), and releases the
 * context behind it. */
Outcome run_scenario(Scenario *scenario, const char *environment);

/* The ending, and a piece of the text when it is not NULL. */
void expect_in(Scenario *scenario, const char *environment, Ending ending, const char *text);
void expect(Scenario *scenario, Ending ending, const char *text);

/* On how many of the seeds 1..count the result is wrong. */
int wrong_seeds(Scenario *scenario, int count);

/* Ends the scenario unless the call succeeds. */
#define DO(call) do_or_end((int)(call), #call, __LINE__)
void do_or_end(int result, const char *call, int line);

/* Whether the call fails in this way; says how it ended otherwise. */
#define FAILS(call, error) fails_with((int)(call), (int)(error), #call, __LINE__)
bool fails_with(int result, int error, const char *call, int line);

/* out[i] = in[i] + term, queued. */
void queue_add(Rig *rig, CUstream stream, CUdeviceptr out, CUdeviceptr in, float term,
               int64_t count);

CUdeviceptr device_memory(Rig *rig, size_t bytes);
float *pinned_memory(Rig *rig, size_t bytes);

/* ---- images ---- */

enum { PART_PTX = 1, PART_ELF = 2, PART_ONE_CHIP = 0x100000, PART_FAMILY = 0x200000 };

/* A fat binary with one part that holds driver_probe_add; free() it. */
void *make_image(int kind, unsigned architecture, uint64_t flags);

#endif
