/* Chooses the kernels' instance for this processor. The rows match kernels.cmake. */
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"

typedef struct Instance {
    const char *isa;
    bool (*runs_here)(void);
    const CpuKernels *fp32, *bf16;
} Instance;

#define DECLARE(isa) extern const CpuKernels kernels_##isa##_fp32, kernels_##isa##_bf16;
#define ROW(isa, runs_here) \
    { #isa, runs_here, &kernels_##isa##_fp32, &kernels_##isa##_bf16 }

static bool always(void) {
    return true;
}

#if defined(__x86_64__)

/* These builtins also ask whether the operating system saves the registers. */
static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx512bf16(void) {
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}

DECLARE(portable)
DECLARE(avx2)
DECLARE(avx512)
DECLARE(avx512bf16)
static const Instance instances[] = {
    ROW(portable, always),
    ROW(avx2, has_avx2),
    ROW(avx512, has_avx512),
    ROW(avx512bf16, has_avx512bf16),
};

#elif defined(__aarch64__)

DECLARE(neon)
static const Instance instances[] = {ROW(neon, always)};

#else

DECLARE(portable)
static const Instance instances[] = {ROW(portable, always)};

#endif

enum { INSTANCES = sizeof instances / sizeof *instances };

/* "portable" is the first row on every architecture. */
static bool matches(const Instance *instance, const char *name) {
    return strcmp(name, instance->isa) == 0 ||
           (instance == instances && strcmp(name, "portable") == 0);
}

/* "portable, avx2": what HEARTH_ISA may be here. */
static void list_usable(char *text, size_t size) {
    *text = 0;
    for (int i = 0; i < INSTANCES; i++) {
        if (!instances[i].runs_here()) continue;
        if (*text) strncat(text, ", ", size - strlen(text) - 1);
        strncat(text, instances[i].isa, size - strlen(text) - 1);
    }
}

static bool choose(const Instance **chosen, Error *error) {
    const char *wanted = getenv("HEARTH_ISA");
    bool any = !wanted || !*wanted, known = false;
    *chosen = NULL;
    for (int i = 0; i < INSTANCES; i++) {
        if (!any && !matches(&instances[i], wanted)) continue;
        known = true;
        if (instances[i].runs_here()) *chosen = &instances[i];
    }
    if (*chosen) return true;
    char usable[64];
    list_usable(usable, sizeof usable);
    return fail(error, "HEARTH_ISA=%s %s; use one of: %s, or unset it", wanted,
                known ? "names instructions that this processor lacks"
                      : "is no instruction set of this build",
                usable);
}

const CpuKernels *cpu_kernels(Dtype storage, Error *error) {
    const Instance *instance;
    if (storage != DTYPE_F32 && storage != DTYPE_BF16) {
        fail(error, "no kernels store %s; use fp32 or bf16", dtype_name(storage));
        return NULL;
    }
    if (!choose(&instance, error)) return NULL;
    return storage == DTYPE_F32 ? instance->fp32 : instance->bf16;
}
