/* What is here for the CUDA backend, for `hearth doctor`: found out without starting a run. */
#ifndef HEARTH_CUDA_REPORT_H
#define HEARTH_CUDA_REPORT_H

#include <stdint.h>

#include "base/error.h"

/* Numbers are -1 and texts empty where they are not known. */
typedef struct CudaReport {
    bool built;     /* the kernels are in this program */
    char chips[64]; /* the chips that they were compiled for: "80 86 89 90 100 120f" */

    bool driver; /* NVIDIA's driver and a GPU are here; else why not */
    Error no_driver;
    bool usable; /* hearth can train on it; else why not */
    Error not_usable;

    char gpu[96];   /* "NVIDIA GeForce RTX 5090" */
    int gpus;       /* that the driver shows; hearth uses the first */
    int capability; /* 120 for 12.0 */
    bool compiled;  /* the kernels were compiled for this chip, not left to the driver */
    int64_t memory, memory_free;
    char driver_version[32]; /* "580.65.06" */
    int cuda;                /* that the driver supports: 13000 for 13.0 */
    int cublaslt, nccl;      /* versions: 130100 for 13.1.0, 22809 for 2.28.9 */

    bool watched; /* NVML is here; else why not */
    Error not_watched;
    int temperature, slowdown_temperature; /* degrees Celsius */
    int power, power_limit, power_default; /* watts */
    char slowed[96]; /* why the clock is not the highest, such as "its power limit, heat" */
} CudaReport;

void cuda_report(CudaReport *report);

#endif
