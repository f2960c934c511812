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
        recompute_apply(program, choice->recompute, error))
        return true;
    program_free(program);
    return false;
}

double plan_seconds(const Program *program, int64_t rows, const Device *device) {
    double micro_batches = (double)rows / (double)program->B;
    return micro_batches * section_seconds(program, SECTION_MICRO_BATCH, device) +
           section_seconds(program, SECTION_UPDATE, device);
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
    return (int)left->choice.recompute - (int)right->choice.recompute;
}

/* Every pair of micro-batch and logit chunk, ranked without recompute: so the pair that is chosen, which
 * decides the order of additions, does not depend on the recompute setting while memory has room for it.
 * Returns how many or -1. */
static int list_pairs(const PlanRequest *request, StateFormat state, Candidate *pairs,
                      Error *error) {
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
            Candidate *pair = &pairs[count++];
            pair->choice = (PlanChoice){
                .micro_batch = rows, .state = state, .logit_chunk = smaller(chunk, tokens)};
            double seconds;
            int64_t live;
            if (!weigh(request, &pair->choice, &seconds, &live, error)) return -1;
            /* Twice the memory must buy nearly two per cent of time: predictions are no better than that. */
            pair->rank = seconds * (1 + 0.02 * log2((double)live));
        }
    }
    return count;
}

/* How much longer a step takes at each level of recompute, measured on one pair. */
static bool recompute_factors(const PlanRequest *request, PlanChoice choice,
                              double factors[RECOMPUTE_LEVELS], Error *error) {
    double seconds[RECOMPUTE_LEVELS];
    int64_t live;
    for (int level = 0; level < RECOMPUTE_LEVELS; level++) {
        choice.recompute = (RecomputeLevel)level;
        if (!weigh(request, &choice, &seconds[level], &live, error)) return false;
        factors[level] = seconds[level] / seconds[RECOMPUTE_NONE];
    }
    return true;
}

/* All allowed choices with this optimizer state, best first. Returns how many or -1. */
static int list_candidates(const PlanRequest *request, StateFormat state, Candidate *candidates,
                           Error *error) {
    Candidate *pairs = candidates + PAIRS_MOST * RECOMPUTE_LEVELS;
    double factors[RECOMPUTE_LEVELS];
    int pair_count = list_pairs(request, state, pairs, error), count = 0;
    if (pair_count <= 0) return pair_count;
    if (!recompute_factors(request, pairs[0].choice, factors, error)) return -1;
    for (int level = 0; level < RECOMPUTE_LEVELS; level++) {
        if (request->recompute >= 0 && level != request->recompute) continue;
        for (int i = 0; i < pair_count; i++) {
            candidates[count] = pairs[i];
            candidates[count].choice.recompute = (RecomputeLevel)level;
            candidates[count++].rank *= factors[level];
        }
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
    bool done = bytes >= 0;
    if (done && bytes <= request->memory) {
        done = layout_program(program, request->backend, error);
        bytes = program->arena_bytes;
    }
    if (done && bytes <= request->memory) return CHOSEN;
    if (done && bytes < *smallest) *smallest = bytes;
    program_free(program);
    return done ? NOTHING_FITS : FAILED;
}

bool plan_step(const PlanRequest *request, Plan *plan, Program *program, Error *error) {
    Candidate *candidates =
        allocate(PAIRS_MOST * (RECOMPUTE_LEVELS + 1), sizeof *candidates, error);
    if (!candidates) return false;
    Outcome outcome = NOTHING_FITS;
    int64_t smallest = INT64_MAX;
    for (int state = STATE_FP32; state <= STATE_8BIT && outcome == NOTHING_FITS; state++) {
        if (request->state >= 0 && state != request->state) continue;
        int count = list_candidates(request, (StateFormat)state, candidates, error);
        if (count < 0) outcome = FAILED;
        for (int i = 0; i < count && outcome == NOTHING_FITS; i++) {
            outcome = try_choice(request, &candidates[i].choice, program, &smallest, error);
            if (outcome == CHOSEN) plan->choice = candidates[i].choice;
        }
    }
    free(candidates);
    if (outcome == CHOSEN) plan->seconds = plan_seconds(program, request->rows, request->device);
    if (outcome == NOTHING_FITS) {
        char needed[32], given[32];
        bool fixed = request->micro_batch > 1 || request->recompute >= 0 || request->state >= 0;
        fail(error,
             "the step does not fit: the smallest plan takes %s and %s is available. Give --memory "
             "more, or take a smaller model, a shorter --seq-len or a smaller --vocab%s",
             format_bytes(needed, smallest),
             format_bytes(given, request->memory > 0 ? request->memory : 0),
             fixed ? ", or leave --micro-batch, --recompute and --optimizer-state to the planner"
                   : "");
    }
    return outcome == CHOSEN;
}
