#include "cuda/describe.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/units.h"
#include "cuda/gpu.h"
#include "cuda/product.h"
#include "cuda/random_fill.h"
#include "cuda/stopwatch.h"
#include "cuda/workspace.h"

/* Dense FLOPs of a multiprocessor in a clock: bf16 with fp32 accumulation, and fp32 (NVIDIA's papers on
 * each architecture). */
static const struct {
    int capability;
    double bf16, fp32;
} rates[] = {{80, 2048, 128},  {86, 512, 256},  {89, 512, 256}, {90, 4096, 256},
             {100, 8192, 256}, {120, 512, 256}, {121, 512, 256}};

/* "NVIDIA GeForce RTX 5090" is listed as rtx-5090, "NVIDIA H100 80GB HBM3" as h100. */
static const char *listed_name(const char *name) {
    char plain[96] = "";
    for (size_t i = 0; name[i] && i + 1 < sizeof plain; i++)
        plain[i] = name[i] == ' ' ? '-' : (char)tolower((unsigned char)name[i]), plain[i + 1] = 0;
    if (strstr(plain, "gb10")) return "dgx-spark";
    const char *longest = NULL;
    for (const char *const *listed = device_names(); *listed; listed++)
        if (strstr(plain, *listed) && (!longest || strlen(*listed) > strlen(longest)))
            longest = *listed;
    return longest;
}

/* From the clocks and the bus, for a chip that is not listed. */
static void estimate(Device *device, const Gpu *gpu, Dtype storage) {
    size_t row = sizeof rates / sizeof *rates - 1;
    while (row > 0 && rates[row].capability > gpu->capability) row--;
    double cycles = 1e3 * (double)gpu->clock * (double)gpu->multiprocessors;
    double single = cycles * rates[row].fp32, matrix = cycles * rates[row].bf16;
    double bandwidth = 2e3 * (double)gpu->memory_clock * (double)gpu->bus / 8;
    *device = (Device){.matmul_flops = storage == DTYPE_F32 ? single : matrix,
                       .efficiency = 0.8,
                       .vector_flops = single,
                       .bandwidth = bandwidth > 0 ? 0.9 * bandwidth : 100e9,
                       .host_bandwidth = gpu->unified ? 0 : 20e9,
                       .launch = 3e-6,
                       .driver_bytes = DRIVER_BYTES};
}

bool cuda_describe(Device *device, Dtype storage, Error *error) {
    const Gpu *gpu = gpu_open(error);
    if (!gpu) return false;
    const char *listed = listed_name(gpu->name);
    if (!listed)
        estimate(device, gpu, storage);
    else if (!device_find(device, listed, storage, error))
        return false;
    snprintf(device->name, sizeof device->name, "%.60s", gpu->name);
    device->memory = gpu->unified ? memory_available() : gpu->memory;
    return true;
}

/* Memory for the measurements, and what times them. */
typedef struct Bench {
    const Gpu *gpu;
    CUdeviceptr memory;
    int64_t bytes;
    CUstream stream;
    Stopwatch watch;
} Bench;

static bool check(const Bench *bench, CUresult result, Error *error) {
    return cuda_check(&bench->gpu->driver, result, error, "measuring %s failed", bench->gpu->name);
}

static bool bench_open(Bench *bench, const Gpu *gpu, int64_t bytes, Error *error) {
    const CudaDriver *driver = &gpu->driver;
    *bench = (Bench){.gpu = gpu, .bytes = bytes};
    char needed[32];
    return gpu_use(gpu, error) &&
           cuda_check(driver, driver->allocate(&bench->memory, (size_t)bytes), error,
                      "%s to measure %s with cannot be had: close what else uses the GPU",
                      format_bytes(needed, bytes), gpu->name) &&
           check(bench, driver->stream_create(&bench->stream, CU_STREAM_NON_BLOCKING), error) &&
           stopwatch_open(&bench->watch, gpu, bench->stream, error);
}

static void bench_close(Bench *bench) {
    const CudaDriver *driver = &bench->gpu->driver;
    stopwatch_close(&bench->watch);
    if (bench->stream) driver->stream_destroy(bench->stream);
    if (bench->memory) driver->release(bench->memory);
}

/* Bytes read and written in a second by a copy inside the memory. */
static bool measure_bandwidth(Bench *bench, double *rate, Error *error) {
    const CudaDriver *driver = &bench->gpu->driver;
    size_t half = (size_t)bench->bytes / 2;
    double seconds = 0, best = 1e9;
    for (int round = 0; round < 3; round++) {
        if (!stopwatch_start(&bench->watch, error) ||
            !check(bench,
                   driver->copy_within(bench->memory + half, bench->memory, half, bench->stream),
                   error) ||
            !stopwatch_stop(&bench->watch, &seconds, error))
            return false;
        if (seconds > 0 && seconds < best) best = seconds;
    }
    if (best < 1e9) *rate = 2.0 * (double)half / best;
    return true;
}

/* FLOP/s of a square product of `size`, by the heuristic's algorithm; 0 where there is none. */
static bool measure_product(Bench *bench, Dtype storage, int64_t size, double *rate, Error *error) {
    const Gpu *gpu = bench->gpu;
    int64_t bytes = size * size * dtype_size(storage);
    CUdeviceptr at = bench->memory;
    ProductOperands operands = {.out = at,
                                .a = at + (CUdeviceptr)bytes,
                                .b = at + (CUdeviceptr)(2 * bytes),
                                .workspace = at + (CUdeviceptr)(3 * bytes)};
    double seconds = 0;
    Product product = {.key = {.M = size,
                               .N = size,
                               .K = size,
                               .transpose_b = true,
                               .operands = storage,
                               .out = storage,
                               .align_a = 256,
                               .align_b = 256,
                               .align_out = 256}};
    bool done = product_open(gpu, &product, error);
    for (int round = 0; done && round < 3; round++) {
        done = stopwatch_start(&bench->watch, error) &&
               product_run(gpu, &product, NULL, &operands, bench->stream, error) &&
               stopwatch_stop(&bench->watch, &seconds, error);
        double flops = 2 * (double)size * (double)size * (double)size;
        if (done && seconds > 0 && flops / seconds > *rate) *rate = flops / seconds;
    }
    product_close(gpu, &product);
    return done;
}

/* Larger and larger products, while the memory holds them and they are done in an instant. */
static bool measure_peak(Bench *bench, Dtype storage, double *peak, Error *error) {
    enum { LEAST = 128, MOST = 8192 };
    static const double instant = 0.04;
    double rate = 0;
    for (int64_t size = LEAST; size <= MOST; size *= 2) {
        double started = seconds_now();
        if (3 * size * size * dtype_size(storage) + CUDA_MATMUL_WORKSPACE > bench->bytes) break;
        if (!measure_product(bench, storage, size, &rate, error)) return false;
        if (seconds_now() - started > instant) break;
    }
    if (rate > 0) *peak = rate;
    return true;
}

bool cuda_measure(Device *device, Dtype storage, int64_t memory, Error *error) {
    enum { MOST = 512 << 20, LEAST = CUDA_MATMUL_WORKSPACE + (1 << 20) };
    const Gpu *gpu = gpu_open(error);
    Bench bench;
    if (!gpu) return false;
    int64_t bytes = memory > MOST ? MOST : memory < LEAST ? LEAST : memory;
    bool done = bench_open(&bench, gpu, bytes, error) &&
                random_fill(gpu, bench.memory, bytes, bench.stream, error) &&
                measure_bandwidth(&bench, &device->bandwidth, error) &&
                measure_peak(&bench, storage, &device->matmul_flops, error);
    bench_close(&bench);
    return done;
}
