#include "step/planner.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "step/cost.h"

enum { CANDIDATES = 4096, ROWS_MOST = 64 };

typedef struct Candidate {
    PlanChoice choice;
    double seconds;
    double rank; /* what they are sorted by */
    int64_t live;
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

static bool weigh(const PlanRequest *request, Candidate *candidate, Error *error) {
    Program program;
    if (!write_candidate(request, &candidate->choice, &program, error)) return false;
    double micro_batches = (double)request->rows / (double)candidate->choice.micro_batch;
    candidate->live = program_live_bytes(&program, error);
    candidate->seconds = micro_batches * section_seconds(&program, SECTION_MICRO_BATCH, request->device) +
                         section_seconds(&program, SECTION_UPDATE, request->device);
    /* Twice the memory must buy one per cent of time: predictions are no better than that. */
    candidate->rank = candidate->seconds * (1 + 0.01 * log2((double)candidate->live));
    program_free(&program);
    return candidate->live >= 0;
}

static int by_rank(const void *a, const void *b) {
    const Candidate *left = a, *right = b;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

/* Every choice with this optimizer state, weighed. Returns how many, or -1 with an error. */
static int list_candidates(const PlanRequest *request, StateFormat state, Candidate *candidates,
                           Error *error) {
    int count = 0;
    for (int64_t rows = 1; rows <= request->rows && rows <= ROWS_MOST; rows++) {
        int64_t micro_batch = request->micro_batch ? request->micro_batch : rows;
        if (request->micro_batch && rows > 1) break;
        if (request->rows % micro_batch) continue;
        int64_t tokens = micro_batch * request->sequence_length;
        for (int level = 0; level < RECOMPUTE_LEVELS; level++) {
            if (request->recompute >= 0 && level != request->recompute) continue;
            for (int64_t chunk = 128; chunk <= 4096 && count < CANDIDATES; chunk *= 2) {
                if (request->logit_chunk && chunk > 128) break;
                if (!request->logit_chunk && chunk > 128 && chunk / 2 >= tokens) break;
                Candidate *candidate = &candidates[count++];
                int64_t wanted = request->logit_chunk ? request->logit_chunk : chunk;
                candidate->choice = (PlanChoice){.micro_batch = micro_batch,
                                                 .recompute = (RecomputeLevel)level,
                                                 .logit_chunk = wanted < tokens ? wanted : tokens,
                                                 .state = state};
                if (!weigh(request, candidate, error)) return -1;
            }
        }
    }
    qsort(candidates, (size_t)count, sizeof *candidates, by_rank);
    return count;
}

typedef enum Outcome { NOTHING_FITS, CHOSEN, FAILED } Outcome;

/* The first candidate that fits; *smallest becomes the least arena that was seen not to. */
static Outcome choose(const PlanRequest *request, const Candidate *candidates, int count, Plan *plan,
                      Program *program, int64_t *smallest, Error *error) {
    for (int i = 0; i < count; i++) {
        const Candidate *candidate = &candidates[i];
        if (candidate->live > request->memory) {
            if (candidate->live < *smallest) *smallest = candidate->live;
            continue;
        }
        if (!write_candidate(request, &candidate->choice, program, error)) return FAILED;
        if (!layout_program(program, request->backend, error)) {
            program_free(program);
            return FAILED;
        }
        if (program->arena_bytes <= request->memory) {
            *plan = (Plan){.choice = candidate->choice, .seconds = candidate->seconds};
            return CHOSEN;
        }
        if (program->arena_bytes < *smallest) *smallest = program->arena_bytes;
        program_free(program);
    }
    return NOTHING_FITS;
}

bool plan_step(const PlanRequest *request, Plan *plan, Program *program, Error *error) {
    Candidate *candidates = allocate(CANDIDATES, sizeof *candidates, error);
    if (!candidates) return false;
    Outcome outcome = NOTHING_FITS;
    int64_t smallest = INT64_MAX;
    for (int state = STATE_FP32; state <= STATE_8BIT && outcome == NOTHING_FITS; state++) {
        if (request->state >= 0 && state != request->state) continue;
        int count = list_candidates(request, (StateFormat)state, candidates, error);
        outcome = count < 0 ? FAILED
                            : choose(request, candidates, count, plan, program, &smallest, error);
    }
    free(candidates);
    if (outcome == NOTHING_FITS) {
        char needed[32], given[32];
        fail(error, "the step does not fit: the smallest plan takes %s and %s is available. Give --memory "
                    "more, or take a smaller model, a shorter --seq-len or a smaller --vocab%s",
             format_bytes(needed, smallest), format_bytes(given, request->memory),
             request->micro_batch > 1 || request->recompute >= 0 || request->state >= 0
                 ? ", or leave --micro-batch, --recompute and --optimizer-state to the planner" : "");
    }
    return outcome == CHOSEN;
}
