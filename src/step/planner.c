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

/* A way to take less memory with the same bits, and how much longer a step takes by it. */
typedef struct Saving {
    RecomputeLevel recompute;
    Offload offload;
    double factor;
} Saving;

enum { SAVINGS = (int)RECOMPUTE_LEVELS * (int)OFFLOADS };

static bool is_allowed(const PlanRequest *request, int level, int offload) {
    if (request->recompute >= 0 && level != request->recompute) return false;
    if (request->offload >= 0) return offload == request->offload;
    return offload == OFFLOAD_NONE || request->device->host_bandwidth > 0;
}

/* The savings allowed, weighed on the pair that takes the least: those with which not even that one fits
 * are left out, and *smallest becomes the least that it takes. Returns how many or -1. */
static int list_savings(const PlanRequest *request, PlanChoice choice, Saving savings[SAVINGS],
                        int64_t *smallest, Error *error) {
    double plain, seconds;
    int64_t live;
    int count = 0;
    if (!weigh(request, &choice, &plain, &live, error)) return -1;
    for (int offload = 0; offload < OFFLOADS; offload++)
        for (int level = 0; level < RECOMPUTE_LEVELS; level++) {
            if (!is_allowed(request, level, offload)) continue;
            choice.recompute = (RecomputeLevel)level, choice.offload = (Offload)offload;
            if (!weigh(request, &choice, &seconds, &live, error)) return -1;
            if (live <= request->memory)
                savings[count++] = (Saving){choice.recompute, choice.offload, seconds / plain};
            else
                *smallest = smaller(*smallest, live);
        }
    return count;
}

/* The choices with this optimizer state that may fit, best first. Returns how many or -1. */
static int list_candidates(const PlanRequest *request, StateFormat state, Candidate *candidates,
                           int64_t *smallest, Error *error) {
    Candidate *pairs = candidates + PAIRS_MOST * SAVINGS;
    Saving savings[SAVINGS];
    int pair_count = list_pairs(request, state, pairs), count = 0;
    if (!pair_count) return 0;
    int saving_count = list_savings(request, pairs[0].choice, savings, smallest, error);
    if (saving_count <= 0) return saving_count;
    if (!rank_pairs(request, pairs, pair_count, error)) return -1;
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

/* Lays a choice out and keeps the program if it fits; *smallest becomes the least that did not. */
static Outcome try_choice(const PlanRequest *request, const PlanChoice *choice, Program *program,
                          int64_t *smallest, Error *error) {
    if (!write_candidate(request, choice, program, error)) return FAILED;
    int64_t bytes = program_live_bytes(program, error);
    bool done = bytes >= 0, fits = false;
    if (done && bytes <= request->memory) {
        done = layout_program(program, request->backend, error);
        bytes = program_device_bytes(program, request->backend, request->device);
        fits = done && bytes <= request->memory && program->host_bytes <= request->host_memory;
    }
    if (fits) return CHOSEN;
    if (done && bytes < *smallest) *smallest = bytes;
    program_free(program);
    return done ? NOTHING_FITS : FAILED;
}

static void report_shortage(const PlanRequest *request, int64_t smallest, Error *error) {
    char needed[32], given[32];
    bool fixed = request->micro_batch > 1 || request->recompute >= 0 || request->state >= 0 ||
                 request->offload >= 0;
    if (smallest <= request->memory) {
        fail(error,
             "what --offload %s moves takes more than the %s of host memory that a run may have: "
             "give another --offload, or take a smaller model",
             offload_name((Offload)request->offload), format_bytes(given, request->host_memory));
        return;
    }
    fail(error,
         "the step does not fit: the smallest plan takes %s and %s is available. Give --memory "
         "more, or take a smaller model, a shorter --seq-len or a smaller --vocab%s",
         format_bytes(needed, smallest),
         format_bytes(given, request->memory > 0 ? request->memory : 0),
         fixed ? ", or leave --micro-batch, --recompute, --optimizer-state and --offload to the "
                 "planner"
               : "");
}

bool plan_step(const PlanRequest *request, Plan *plan, Program *program, Error *error) {
    Candidate *candidates = allocate(PAIRS_MOST * (SAVINGS + 1), sizeof *candidates, error);
    if (!candidates) return false;
    Outcome outcome = NOTHING_FITS;
    int64_t smallest = INT64_MAX;
    for (int state = STATE_FP32; state <= STATE_8BIT && outcome == NOTHING_FITS; state++) {
        if (request->state >= 0 && state != request->state) continue;
        int count = list_candidates(request, (StateFormat)state, candidates, &smallest, error);
        if (count < 0) outcome = FAILED;
        for (int i = 0; i < count && outcome == NOTHING_FITS; i++) {
            outcome = try_choice(request, &candidates[i].choice, program, &smallest, error);
            if (outcome == CHOSEN) plan->choice = candidates[i].choice;
        }
    }
    free(candidates);
    if (outcome == CHOSEN) plan->seconds = plan_seconds(program, request->rows, request->device);
    if (outcome == NOTHING_FITS) report_shortage(request, smallest, error);
    return outcome == CHOSEN;
}
