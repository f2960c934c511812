#include "cuda/matmul_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cuda/workspace.h"

enum { ROUNDS = 3 };
static const double seconds_for_timing = 3; /* of all products; then the heuristic decides */

/* Sums of partial products in place are added in whatever order they are done: not those. */
static const uint32_t reductions =
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;

bool choice_begin(Choice *choice, CUstream stream, Error *error) {
    const Gpu *gpu = choice->matmuls->gpu;
    const CublasLt *lt = &gpu->cublaslt;
    const uint64_t workspace = CUDA_MATMUL_WORKSPACE;
    matmul_cache_open(&choice->cache, gpu->name, gpu->driver_version, lt->version());
    choice->started = seconds_now();
    if (lt->preference_create(&choice->preference) != CUBLAS_STATUS_SUCCESS ||
        lt->preference_set(choice->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                           sizeof workspace) != CUBLAS_STATUS_SUCCESS ||
        lt->preference_set(choice->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                           &reductions, sizeof reductions) != CUBLAS_STATUS_SUCCESS)
        return fail(error, "cuBLASLt takes no preferences: is it older than version 12?");
    return stopwatch_open(&choice->watch, gpu, stream, error);
}

void choice_end(Choice *choice, bool done) {
    const Gpu *gpu = choice->matmuls->gpu;
    if (choice->preference) gpu->cublaslt.preference_destroy(choice->preference);
    stopwatch_close(&choice->watch);
    if (done && choice->timed)
        log_line("matmuls: timed %d algorithms for %zu products in %.1f s", choice->timed,
                 choice->matmuls->count, seconds_now() - choice->started);
    matmul_cache_close(&choice->cache);
}

/* One run on the operation's own memory. false: the algorithm failed, and why. */
static bool time_run(Choice *choice, const Product *product, const cublasLtMatmulAlgo_t *algorithm,
                     const ProductOperands *operands, double *seconds, Error *error) {
    Stopwatch *watch = &choice->watch;
    return stopwatch_start(watch, error) &&
           product_run(watch->gpu, product, algorithm, operands, watch->stream, error) &&
           stopwatch_stop(watch, seconds, error);
}

/* Keeps in product->algorithms what cuBLASLt proposes and has not failed before. */
static bool list_candidates(Choice *choice, Product *product, const char *text, Error *error) {
    const Gpu *gpu = choice->matmuls->gpu;
    const CublasLt *lt = &gpu->cublaslt;
    const ProductKey *key = &product->key;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t bytes;
    } alignments[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)key->align_b},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)key->align_a},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)key->align_out},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)key->align_out}};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        lt->preference_set(choice->preference, alignments[i].attribute, &alignments[i].bytes,
                           sizeof alignments[i].bytes);
    cublasLtMatmulHeuristicResult_t results[PRODUCT_CANDIDATES];
    int found = 0;
    cublasStatus_t status =
        lt->heuristic(gpu->cublaslt_handle, product->desc, product->b, product->a, product->out,
                      product->out, choice->preference, PRODUCT_CANDIDATES, results, &found);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; i++)
        if (results[i].state == CUBLAS_STATUS_SUCCESS &&
            !matmul_cache_failed(&choice->cache, text, &results[i].algo))
            product->algorithms[product->count++] = results[i].algo;
    return product->count || fail(error, "cuBLASLt %zu has no algorithm for %s on %s: %s",
                                  lt->version(), text, gpu->name, lt->status_string(status));
}

/* Best of a few runs; a failure is reported once, remembered, and the algorithm never used. */
static double time_candidate(Choice *choice, const Product *product, int candidate,
                             const char *text, const ProductOperands *operands, int rounds,
                             Error *error) {
    double best = -1;
    for (int round = 0; round < rounds; round++) {
        double seconds;
        if (!time_run(choice, product, &product->algorithms[candidate], operands, &seconds,
                      error)) {
            log_warning("matmul algorithm %d of %s is left out from now on: %s", candidate, text,
                        error->message);
            matmul_cache_set_failed(&choice->cache, text, &product->algorithms[candidate]);
            return -1;
        }
        if (best < 0 || seconds < best) best = seconds;
    }
    return best;
}

/* Moves the fastest candidate to the front. Once the time is up, the first that works. */
static bool choose(Choice *choice, Product *product, const char *text,
                   const ProductOperands *operands, Error *error) {
    int fastest = -1;
    double least = 0;
    for (int i = 0; i < product->count; i++) {
        bool hurry = seconds_now() - choice->started > seconds_for_timing;
        if (hurry && fastest >= 0) break;
        double seconds =
            time_candidate(choice, product, i, text, operands, hurry ? 1 : ROUNDS, error);
        choice->timed++;
        if (seconds >= 0 && (fastest < 0 || seconds < least)) fastest = i, least = seconds;
    }
    if (fastest < 0) return fail_within(error, "no algorithm of cuBLASLt works for %s", text);
    product->algorithms[0] = product->algorithms[fastest];
    product->count = 1;
    matmul_cache_set(&choice->cache, text, &product->algorithms[0]);
    return true;
}

/* What an earlier run found, if cuBLASLt still proposes it and it still works. */
static bool use_known(Choice *choice, Product *product, const char *text,
                      const ProductOperands *operands) {
    cublasLtMatmulAlgo_t known;
    Error error;
    int place = 0;
    if (!matmul_cache_find(&choice->cache, text, &known)) return false;
    while (place < product->count && memcmp(&product->algorithms[place], &known, sizeof known))
        place++;
    if (place == product->count) return false;
    if (time_candidate(choice, product, place, text, operands, 1, &error) < 0) {
        product->algorithms[place] = product->algorithms[--product->count];
        return false;
    }
    product->algorithms[0] = known;
    product->count = 1;
    return true;
}

static CUdeviceptr place(const Choice *choice, Operand operand) {
    if (operand.buffer < 0) return 0;
    return choice->arena + (CUdeviceptr)program_place(choice->program, operand);
}

bool choice_make(Choice *choice, Product *product, const Operation *operation, Error *error) {
    char text[PRODUCT_TEXT];
    product_text(&product->key, text);
    ProductOperands operands = {.out = place(choice, operation->outputs[0]),
                                .a = place(choice, operation->inputs[0]),
                                .b = place(choice, operation->inputs[1]),
                                .addend = place(choice, operation->inputs[2]),
                                .workspace = place(choice, operation->workspace)};
    return list_candidates(choice, product, text, error) &&
           (use_known(choice, product, text, &operands) ||
            choose(choice, product, text, &operands, error));
}
