/* CORE, the metric of DCLM (arXiv 2406.11794): how much better than guessing a model answers the questions of
 * a bundle of tasks, as nanochat computes it.
 *
 * core_open() reads the bundle and tokenizes every prompt, so that all that can be wrong with it shows before
 * a model runs, and the longest prompt is known when the program is planned:
 *
 *     core_open(&core, "eval_bundle", tokenizer, &settings, error)
 *     sizes = core_sizes(&core)       into the ModelSettings that the generation sections are written with
 *     core_evaluate(&core, &inference, …)   as often as wanted
 */
#ifndef HEARTH_EVAL_CORE_H
#define HEARTH_EVAL_CORE_H

#include "eval/core_score.h"

/* How far beyond its T a model is asked: to ten times that, nanochat's rotary table. Of a longer prompt the
 * beginning is left out. */
enum { CORE_CONTEXTS = 10 };

typedef struct CoreSettings {
    int64_t examples;        /* of each task, the first after shuffling; 0 = all */
    int64_t sequence_length; /* T that the model is trained on */
} CoreSettings;

typedef struct CoreSet {
    CoreTask task;
    CoreExample *examples;
    size_t count; /* 0: the bundle lacks the task's data */
} CoreSet;

typedef struct Core {
    CoreSet *sets;
    size_t count;    /* tasks of the bundle */
    size_t present;  /* those whose data is there */
    size_t longest;  /* tokens of the longest prompt */
    uint64_t tokens; /* of all prompts: the work of an evaluation */
} Core;

/* Tokenizes on all cores and shows how far it is. A bundle without the data of any task is an error. Release
 * with core_close(). */
bool core_open(Core *core, const char *directory, const Tokenizer *tokenizer,
               const CoreSettings *settings, Error *error);
void core_close(Core *core);

/* What a program needs to be evaluated, for ModelSettings. The rotary table has to have `context` rows; when
 * that is more than the model's T, model_config_set_sequence_length() comes first. */
typedef struct CoreSizes {
    int64_t context, prefill, score;
} CoreSizes;
CoreSizes core_sizes(const Core *core);

typedef struct CoreResult {
    size_t correct;
    double accuracy, centered; /* shares: centered is 0 for guessing, 1 for no error */
    double seconds;
} CoreResult;

typedef struct CoreReport {
    CoreResult *tasks; /* [core->count]; zeros where the data is missing */
    double core;       /* mean of the centered results of the tasks that are present */
    double seconds;
} CoreReport;

/* Who wants to see more: every example's outcome, in order; false from it stops the evaluation, with the
 * error that it has set. */
typedef struct CoreWatcher {
    bool (*example)(void *context, const CoreSet *set, size_t index, const CoreOutcome *outcome,
                    Error *error);
    void *context;
} CoreWatcher;

/* Shows how far it is. The program must have been written with core_sizes() or more. `watcher` may be NULL.
 * Release with core_report_free(), also after a failure. */
bool core_evaluate(const Core *core, const Inference *inference, const CoreWatcher *watcher,
                   CoreReport *report, Error *error);
void core_report_free(CoreReport *report);

#endif
