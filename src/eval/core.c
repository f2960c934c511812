#include "eval/core.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/integer.h"
#include "base/log.h"

/* Tokens of a prefill and of a run of branches: few examples have less, and a GPU is busy with it. */
enum { PREFILL = 128, SCORE = 256 };

CoreSizes core_sizes(const Core *core) {
    int64_t chunks = divide_up((int64_t)core->longest, PREFILL);
    return (CoreSizes){.context = chunks * PREFILL, .prefill = PREFILL, .score = SCORE};
}

/* An evaluation on its way. */
typedef struct Evaluating {
    const Core *core;
    const CoreWatcher *watcher;
    CoreScorer scorer;
    Progress progress;
    char label[96];  /* of the progress */
    uint64_t tokens; /* done */
} Evaluating;

static bool evaluate_example(Evaluating *evaluating, const CoreSet *set, size_t index,
                             CoreResult *result, Error *error) {
    const CoreExample *example = &set->examples[index];
    const CoreWatcher *watcher = evaluating->watcher;
    CoreOutcome outcome;
    if (!core_score(&evaluating->scorer, set->task.type, example, &outcome, error)) return false;
    result->correct += outcome.correct;
    evaluating->tokens += core_example_tokens(example);
    progress_update(&evaluating->progress, evaluating->tokens);
    return !watcher || watcher->example(watcher->context, set, index, &outcome, error);
}

static bool evaluate_set(Evaluating *evaluating, const CoreSet *set, CoreResult *result,
                         Error *error) {
    double started = seconds_now(), baseline = set->task.baseline / 100;
    for (size_t i = 0; i < set->count; i++)
        if (!evaluate_example(evaluating, set, i, result, error)) return false;
    result->accuracy = (double)result->correct / (double)set->count;
    result->centered = (result->accuracy - baseline) / (1 - baseline);
    result->seconds = seconds_now() - started;
    return true;
}

static bool evaluate_sets(Evaluating *evaluating, CoreReport *report, Error *error) {
    const Core *core = evaluating->core;
    size_t done = 0;
    for (size_t i = 0; i < core->count; i++) {
        const CoreSet *set = &core->sets[i];
        if (!set->count) continue;
        snprintf(evaluating->label, sizeof evaluating->label, "CORE %zu/%zu %s", ++done,
                 core->present, set->task.label);
        if (!evaluate_set(evaluating, set, &report->tasks[i], error)) return false;
        report->core += report->tasks[i].centered / (double)core->present;
        report->seconds += report->tasks[i].seconds;
    }
    return true;
}

bool core_evaluate(const Core *core, const Inference *inference, const CoreWatcher *watcher,
                   CoreReport *report, Error *error) {
    Evaluating evaluating = {.core = core, .watcher = watcher};
    evaluating.progress = progress_start(evaluating.label, core->tokens);
    *report = (CoreReport){.tasks = allocate(core->count, sizeof *report->tasks, error)};
    bool done = report->tasks && core_scorer_start(&evaluating.scorer, inference, error) &&
                evaluate_sets(&evaluating, report, error);
    progress_end(&evaluating.progress);
    core_scorer_free(&evaluating.scorer);
    return done;
}

void core_report_free(CoreReport *report) {
    free(report->tasks);
    *report = (CoreReport){0};
}
