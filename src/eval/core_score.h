/* What a model answers to an example: its branches through the score section. */
#ifndef HEARTH_EVAL_CORE_SCORE_H
#define HEARTH_EVAL_CORE_SCORE_H

#include "eval/core_example.h"
#include "eval/inference.h"

typedef struct CoreOutcome {
    size_t choices;
    double losses
        [CORE_CHOICES_MAX]; /* mean over the scored tokens of each choice; NaN: there are none */
    size_t answer;          /* the choice of the lowest; language modeling: 0 */
    bool correct;
} CoreOutcome;

/* The rows of a run of the score section, filled branch by branch. */
typedef struct CoreScorer {
    const Inference *inference;
    int64_t rows, used;
    int32_t *input, *previous; /* [rows], or what a prefill takes if that is more */
    int32_t *start, *targets, *best, *branch;
    float *losses;
} CoreScorer;

/* The inference needs its prefill and score sections. Release with core_scorer_free(), also after a
 * failure. */
bool core_scorer_start(CoreScorer *scorer, const Inference *inference, Error *error);
void core_scorer_free(CoreScorer *scorer);

/* The prompts must fit the program's context. */
bool core_score(CoreScorer *scorer, CoreType type, const CoreExample *example, CoreOutcome *outcome,
                Error *error);

#endif
