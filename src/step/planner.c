#include "step/planner.h"

#include <math.h>
#include <stdlib.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/units.h"
#include "step/cost.h"

enum { PAIRS_MOST = 512, ROWS_MOST = 64, CHUNK_LEAST = 128, CHUNK_MOST = 4096, CHUNKS_MOST = 1024 };

typedef struct Candidate {
    PlanChoice choice;
    double rank; /* what candidates are sorted by */
} Candidate;

/* A way to take less memory with the same bits, and how much longer a step takes by it. */
typedef struct Saving {
    RecomputeLevel recompute;
    Offload offload;
    double factor;
} Saving;

enum { SAVINGS = (int)RECOMPUTE_LEVELS * (int)OFFLOADS, STATE_FORMATS = STATE_8BIT + 1 };

typedef struct Search {
    const PlanRequest *request;
    Candidate pairs[PAIRS_MOST], candidates[PAIRS_MOST * SAVINGS]; /* of one optimizer state */
    Candidate least[STATE_FORMATS * SAVINGS]; /* the smallest pair, by bytes alive */
    int least_count;
} Search;

/* The program of a choice, ready for layout. */
static bool write_candidate(const PlanRequest *request, const PlanChoice *choice, Program *program,
                            Error *error) {
    if (request->write(program, choice, request->context, error) &&
        recompute_apply(program, choice->recompute, error) &&
        offload_apply(program, choice->offload, error))
        return true;
    program_free(program);
    return false;
}

double plan_seconds(const Program *program, int64_t rows, const Device *device) {
    double micro_batches = (double)rows / (double)program->B;
    return micro_batches * section_seconds(program, SECTION_MICRO_BATCH, device, NULL) +
           section_seconds(program, SECTION_UPDATE, device, NULL);
}

int64_t program_device_bytes(const Program *program, const Backend *backend, const Device *device) {
    int64_t beside, pinned;
    backend->beside(program, &beside, &pinned);
    return program->arena_bytes + beside +
           (device->host_bandwidth > 0 ? 0 : program->host_bytes + pinned);
}

/* Predicted seconds of a choice, and the bytes alive at its worst moment. */
static bool weigh(const PlanRequest *request, const PlanChoice *choice, double *seconds,
                  int64_t *live, Error *error) {
    Program program;
    if (!write_candidate(request, choice, &program, error)) return false;
    *seconds = plan_seconds(&program, request->rows, request->device);
    *live = program_live_bytes(&program, error);
    program_free(&program);
    return *live >= 0;
}

static int by_rank(const void *a, const void *b) {
    const Candidate *left = a, *right = b;
    if (left->rank != right->rank) return left->rank < right->rank ? -1 : 1;
    if (left->choice.offload != right->choice.offload)
        return (int)left->choice.offload - (int)right->choice.offload;
    return (int)left->choice.recompute - (int)right->choice.recompute;
}

/* Every pair of micro-batch and logit chunk, from the one that takes the least memory. Returns how many. */
static int list_pairs(const PlanRequest *request, StateFormat state, Candidate *pairs) {
    int count = 0;
    int64_t first = request->micro_batch ? request->micro_batch : 1;
    int64_t last = request->micro_batch ? request->micro_batch : ROWS_MOST;
    for (int64_t rows = first; rows <= last && rows <= request->rows; rows++) {
        if (request->rows % rows) continue;
        int64_t tokens = rows * request->sequence_length;
        int64_t least = CHUNK_LEAST, most = CHUNK_MOST;
        while (tokens / least > CHUNKS_MOST) least *= 2; /* more would only make the program long */
        if (request->logit_chunk) least = most = request->logit_chunk;
        least = smaller(least, tokens);
        if (most < least) most = least;
        for (int64_t chunk = least; chunk <= most && count < PAIRS_MOST; chunk *= 2) {
            if (chunk > least && chunk / 2 >= tokens)
                break; /* one chunk holds all tokens already */
            pairs[count++].choice = (PlanChoice){
                .micro_batch = rows, .state = state, .logit_chunk = smaller(chunk, tokens)};
        }
    }
    return count;
}

/* Ranks pairs without recompute and offload: so the pair that is chosen, which decides the order of
 * additions, does not depend on these while memory has room for it. */
static bool rank_pairs(const PlanRequest *request, Candidate *pairs, int count, Error *error) {
    for (int i = 0; i < count; i++) {
        double seconds;
        int64_t live;
        if (!weigh(request, &pairs[i].choice, &seconds, &live, error)) return false;
        /* Twice the memory must buy nearly two per cent of time: predictions are no better than that. */
        pairs[i].rank = seconds * (1 + 0.02 * log2((double)live));
    }
    return true;
}

static bool is_allowed(const PlanRequest *request, int level, int offload) {
    if (request->recompute >= 0 && level != request->recompute) return false;
    if (request->offload >= 0) return offload == request->offload;
    return offload == OFFLOAD_NONE || request->device->host_bandwidth > 0;
}

/* The savings allowed, weighed on the pair that takes the least: those with which not even that one fits
 * are left out. Returns how many or -1. */
static int list_savings(Search *search, PlanChoice choice, Saving savings[SAVINGS], Error *error) {
    const PlanRequest *request = search->request;
    double plain;
    int64_t plain_live;
    int count = 0;
    if (!weigh(request, &choice, &plain, &plain_live, error)) return -1;
    for (int offload = 0; offload < OFFLOADS; offload++)
        for (int level = 0; level < RECOMPUTE_LEVELS; level++) {
            if (!is_allowed(request, level, offload)) continue;
            double seconds = plain;
            int64_t live = plain_live;
            choice.recompute = (RecomputeLevel)level, choice.offload = (Offload)offload;
            if ((level || offload) && !weigh(request, &choice, &seconds, &live, error)) return -1;
            search->least[search->least_count++] = (Candidate){choice, (double)live};
            if (live <= request->memory)
                savings[count++] = (Saving){choice.recompute, choice.offload, seconds / plain};
        }
    return count;
}

/* The choices with this optimizer state that may fit, best first. Returns how many or -1. */
static int list_candidates(Search *search, StateFormat state, Error *error) {
    Candidate *candidates = search->candidates, *pairs = search->pairs;
    Saving savings[SAVINGS];
    int pair_count = list_pairs(search->request, state, pairs), count = 0;
    int saving_count = list_savings(search, pairs[0].choice, savings, error);
    if (saving_count <= 0) return saving_count;
    if (!rank_pairs(search->request, pairs, pair_count, error)) return -1;
    for (int s = 0; s < saving_count; s++)
        for (int i = 0; i < pair_count; i++) {
            candidates[count] = pairs[i];
            candidates[count].choice.recompute = savings[s].recompute;
            candidates[count].choice.offload = savings[s].offload;
            candidates[count++].rank *= savings[s].factor;
        }
    qsort(candidates, (size_t)count, sizeof *candidates, by_rank);
    return count;
}

typedef enum Outcome { NOTHING_FITS, CHOSEN, FAILED } Outcome;

/* Lays a choice out and keeps the program if it fits. */
static Outcome try_choice(const PlanRequest *request, const PlanChoice *choice, Program *program,
                          Error *error) {
    if (!write_candidate(request, choice, program, error)) return FAILED;
    int64_t bytes = program_live_bytes(program, error);
    bool done = bytes >= 0, fits = false;
    if (done && bytes <= request->memory) {
        done = layout_program(program, request->backend, error);
        bytes = program_device_bytes(program, request->backend, request->device);
        fits = done && bytes <= request->memory && program->host_bytes <= request->host_memory;
    }
    if (fits) return CHOSEN;
    program_free(program);
    return done ? NOTHING_FITS : FAILED;
}

/* What a choice takes of the device, and of host memory, laid out. */
static bool measure_choice(const PlanRequest *request, const PlanChoice *choice, int64_t *bytes,
                           int64_t *host_bytes, Error *error) {
    Program program;
    if (!write_candidate(request, choice, &program, error)) return false;
    bool done = layout_program(&program, request->backend, error);
    *bytes = program_device_bytes(&program, request->backend, request->device);
    *host_bytes = program.host_bytes;
    program_free(&program);
    return done;
}

static bool report_memory(const PlanRequest *request, int64_t bytes, Error *error) {
    enum { MIB = 1 << 20 };
    char given[32], needed[32], kept[32];
    bool fixed = request->micro_batch > 1 || request->recompute >= 0 || request->state >= 0 ||
                 request->offload >= 0;
    return fail(
        error,
        "the step does not fit in %s: the smallest plan takes %s, and %s is kept for %s. Give "
        "--memory %lldM, or take a smaller model, a shorter --seq-len or a smaller --vocab%s",
        format_bytes(given, request->memory + request->beside), format_bytes(needed, bytes),
        format_bytes(kept, request->beside),
        request->device->host_bandwidth > 0 ? "the GPU's driver and libraries"
                                            : "the process and its libraries",
        (long long)divide_up(bytes + request->beside, MIB),
        fixed ? ", or leave --micro-batch, --recompute, --optimizer-state and --offload to the "
                "planner"
              : "");
}

/* Says what the smallest plan takes of those for whose offload host memory has room; where offload is
 * fixed there may be none. */
static bool report_shortage(Search *search, Error *error) {
    const PlanRequest *request = search->request;
    qsort(search->least, (size_t)search->least_count, sizeof *search->least, by_rank);
    for (int i = 0; i < search->least_count; i++) {
        int64_t bytes, host_bytes;
        if (!measure_choice(request, &search->least[i].choice, &bytes, &host_bytes, error))
            return false;
        if (host_bytes <= request->host_memory) return report_memory(request, bytes, error);
    }
    char given[32];
    return fail(error,
                "what --offload %s moves takes more than the %s of host memory that a run may "
                "have: give another --offload, or take a smaller model",
                offload_name((Offload)request->offload), format_bytes(given, request->host_memory));
}

bool plan_step(const PlanRequest *request, Plan *plan, Program *program, Error *error) {
    Search *search = allocate(1, sizeof *search, error);
    if (!search) return false;
    search->request = request;
    Outcome outcome = NOTHING_FITS;
    for (int state = STATE_FP32; state < STATE_FORMATS && outcome == NOTHING_FITS; state++) {
        if (request->state >= 0 && state != request->state) continue;
        int count = list_candidates(search, (StateFormat)state, error);
        if (count < 0) outcome = FAILED;
        for (int i = 0; i < count && outcome == NOTHING_FITS; i++) {
            outcome = try_choice(request, &search->candidates[i].choice, program, error);
            if (outcome == CHOSEN) plan->choice = search->candidates[i].choice;
        }
    }
    if (outcome == CHOSEN) plan->seconds = plan_seconds(program, request->rows, request->device);
    if (outcome == NOTHING_FITS) report_shortage(search, error);
    free(search);
    return outcome == CHOSEN;
}
