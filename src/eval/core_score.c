#include "eval/core_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

/* What is known of one branch. */
typedef struct Score {
    double nats;
    int64_t tokens;
    bool predicted; /* every token was the most likely one */
} Score;

/* An example on its way. A place is a token's index in its prompt, and its position for the model. */
typedef struct Pass {
    CoreScorer *scorer;
    const CoreExample *example;
    int64_t cached; /* places in the caches: all branches go on from there */
    Score scores[CORE_CHOICES_MAX];
} Pass;

bool core_scorer_start(CoreScorer *scorer, const Inference *inference, Error *error) {
    int64_t rows = inference->program->score_tokens, prefill = inference->program->prefill_tokens;
    size_t count = (size_t)(rows > prefill ? rows : prefill);
    *scorer = (CoreScorer){.inference = inference, .rows = rows};
    return (scorer->input = allocate(count, sizeof *scorer->input, error)) &&
           (scorer->previous = allocate(count, sizeof *scorer->previous, error)) &&
           (scorer->start = allocate(count, sizeof *scorer->start, error)) &&
           (scorer->targets = allocate(count, sizeof *scorer->targets, error)) &&
           (scorer->best = allocate(count, sizeof *scorer->best, error)) &&
           (scorer->branch = allocate(count, sizeof *scorer->branch, error)) &&
           (scorer->losses = allocate(count, sizeof *scorer->losses, error));
}

void core_scorer_free(CoreScorer *scorer) {
    free(scorer->input);
    free(scorer->previous);
    free(scorer->start);
    free(scorer->targets);
    free(scorer->best);
    free(scorer->branch);
    free(scorer->losses);
    *scorer = (CoreScorer){0};
}

static int32_t token_at(const CoreExample *example, size_t branch, int64_t place) {
    if (place < 0) return -1;
    size_t at = (size_t)place, prefix = example->prefix;
    return (int32_t)
        example->tokens[at < prefix ? at : example->branches[branch].first + at - prefix];
}

/* Where a branch ends: its last token predicts nothing. */
static int64_t end_of(const CoreExample *example, size_t branch) {
    return (int64_t)(example->prefix + example->branches[branch].count) - 1;
}

static int64_t scored_from(const CoreExample *example, size_t branch) {
    return (int64_t)(example->prefix + example->branches[branch].scored);
}

/* How many places the caches are to hold. Where all branches fit one run with what is left over of the prefix
 * before each, that is not worth a prefill. */
static int64_t cached_places(const CoreExample *example, int64_t chunk, int64_t rows) {
    int64_t prefix = (int64_t)example->prefix, whole_chunks = prefix - prefix % chunk, needed = 0;
    for (size_t i = 0; i < example->branch_count; i++) needed += end_of(example, i) - whole_chunks;
    return needed <= rows ? whole_chunks : prefix;
}

static void upload(const Inference *inference, int buffer, const int32_t *values, int64_t count) {
    if (buffer >= 0)
        inference->backend->upload(inference->executor, buffer, 0, values,
                                   count * (int64_t)sizeof *values);
}

/* The prefix into the caches. Behind its last token comes what the input held before: no token looks at
 * those places until they are written again. */
static bool fill_caches(Pass *pass, Error *error) {
    CoreScorer *scorer = pass->scorer;
    const Inference *inference = scorer->inference;
    const Program *program = inference->program;
    int64_t chunk = program->prefill_tokens, count;
    for (int64_t place = 0; place < pass->cached; place += count) {
        count = smaller(chunk, pass->cached - place);
        for (int64_t i = 0; i < count; i++) {
            scorer->input[i] = token_at(pass->example, 0, place + i);
            scorer->previous[i] = token_at(pass->example, 0, place + i - 1);
        }
        upload(inference, program->new_tokens, scorer->input, count);
        upload(inference, program->previous_tokens, scorer->previous, count);
        if (!inference->backend->run(inference->executor, SECTION_PREFILL,
                                     &(StepScalars){.position = place}, error))
            return false;
    }
    return true;
}

/* Adds places of a branch as rows of the run. */
static void add_rows(Pass *pass, size_t branch, int64_t from, int64_t to) {
    CoreScorer *scorer = pass->scorer;
    const CoreExample *example = pass->example;
    int64_t start = scorer->used;
    for (int64_t place = from; place < to; place++) {
        int64_t row = scorer->used++;
        bool scored = place + 1 >= scored_from(example, branch);
        scorer->input[row] = token_at(example, branch, place);
        scorer->previous[row] = token_at(example, branch, place - 1);
        scorer->start[row] = (int32_t)start;
        scorer->targets[row] = scored ? token_at(example, branch, place + 1) : -1;
        scorer->branch[row] = (int32_t)branch;
    }
}

/* Rows without a branch: each is one by itself. */
static void fill_up(CoreScorer *scorer) {
    for (int64_t row = scorer->used; row < scorer->rows; row++) {
        scorer->input[row] = 0;
        scorer->previous[row] = scorer->targets[row] = -1;
        scorer->start[row] = (int32_t)row;
    }
}

static bool add_scores(Pass *pass, Error *error) {
    const CoreScorer *scorer = pass->scorer;
    for (int64_t row = 0; row < scorer->used; row++) {
        if (scorer->targets[row] < 0) continue;
        if (!isfinite(scorer->losses[row]))
            return fail(error, "a token's loss is %f: the weights are damaged or training diverged",
                        (double)scorer->losses[row]);
        Score *score = &pass->scores[scorer->branch[row]];
        score->nats += (double)scorer->losses[row];
        score->tokens++;
        score->predicted &= scorer->best[row] == scorer->targets[row];
    }
    return true;
}

/* Runs the rows there are, which go on from `position`, and begins anew. */
static bool run_rows(Pass *pass, int64_t position, Error *error) {
    CoreScorer *scorer = pass->scorer;
    const Inference *inference = scorer->inference;
    const Program *program = inference->program;
    const Backend *backend = inference->backend;
    int64_t rows = scorer->rows, bytes = rows * (int64_t)sizeof *scorer->losses;
    if (!scorer->used) return true;
    fill_up(scorer);
    upload(inference, program->score_input, scorer->input, rows);
    upload(inference, program->previous_tokens, scorer->previous, rows);
    upload(inference, program->score_start, scorer->start, rows);
    upload(inference, program->score_targets, scorer->targets, rows);
    bool done = backend->run(inference->executor, SECTION_SCORE,
                             &(StepScalars){.position = position}, error) &&
                backend->download(inference->executor, program->score_losses, 0, scorer->losses,
                                  bytes, error) &&
                backend->download(inference->executor, program->score_best, 0, scorer->best, bytes,
                                  error) &&
                add_scores(pass, error);
    scorer->used = 0;
    return done;
}

/* A branch that does not fit one run: piece by piece, each put into the caches for the next. The places
 * before the branches stay as they are. */
static bool run_alone(Pass *pass, size_t branch, Error *error) {
    int64_t end = end_of(pass->example, branch), rows = pass->scorer->rows;
    for (int64_t place = pass->cached; place < end; place += rows) {
        add_rows(pass, branch, place, smaller(place + rows, end));
        if (!run_rows(pass, place, error)) return false;
    }
    return true;
}

static bool run_branches(Pass *pass, Error *error) {
    CoreScorer *scorer = pass->scorer;
    for (size_t branch = 0; branch < pass->example->branch_count; branch++) {
        int64_t end = end_of(pass->example, branch), count = end - pass->cached;
        if (scored_from(pass->example, branch) > end) continue;
        if (scorer->used + count > scorer->rows && !run_rows(pass, pass->cached, error))
            return false;
        if (count <= scorer->rows)
            add_rows(pass, branch, pass->cached, end);
        else if (!run_alone(pass, branch, error))
            return false;
    }
    return run_rows(pass, pass->cached, error);
}

/* As Python's min() and index() do: the first of the lowest; a NaN is kept where it is first, else
 * never taken. */
static size_t lowest(const double *values, size_t count) {
    size_t lowest = 0;
    for (size_t i = 1; i < count; i++)
        if (values[i] < values[lowest]) lowest = i;
    return lowest;
}

bool core_score(CoreScorer *scorer, CoreType type, const CoreExample *example, CoreOutcome *outcome,
                Error *error) {
    Pass pass = {.scorer = scorer, .example = example};
    pass.cached = cached_places(example, scorer->inference->program->prefill_tokens, scorer->rows);
    for (size_t i = 0; i < example->branch_count; i++) pass.scores[i].predicted = true;
    if (!fill_caches(&pass, error) || !run_branches(&pass, error)) return false;
    outcome->choices = example->branch_count;
    for (size_t i = 0; i < example->branch_count; i++)
        outcome->losses[i] = pass.scores[i].nats / (double)pass.scores[i].tokens;
    outcome->answer = lowest(outcome->losses, outcome->choices);
    outcome->correct = type == CORE_LANGUAGE_MODELING ? pass.scores[0].predicted
                                                      : outcome->answer == example->gold;
    return true;
}
