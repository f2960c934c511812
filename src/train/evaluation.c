#include "train/evaluation.h"

#include <math.h>
#include <time.h>

#include "base/log.h"
#include "eval/evaluate.h"
#include "train/interrupt.h"

bool evaluate_validation(Run *run, TrainResult *result, Error *error) {
    Evaluation evaluation;
    if (!evaluate_dataset(&run->inference, run->dataset, SPLIT_VALIDATION, run->settings->packing,
                          run->settings->eval_tokens, false, &evaluation, error))
        return false;
    result->val_loss = evaluation.loss, result->val_bpb = evaluation.bpb;
    double now = (double)time(NULL);
    metrics_evaluation(&run->log, run->step, evaluation.loss, evaluation.bpb);
    tensorboard_scalar(&run->board, now, run->step, "val/loss", evaluation.loss);
    if (isfinite(evaluation.bpb)) {
        tensorboard_scalar(&run->board, now, run->step, "val/bpb", evaluation.bpb);
        log_line("step %lld: validation loss %.4f, %.4f bits per byte", (long long)run->step,
                 evaluation.loss, evaluation.bpb);
    } else { /* no tokenizer says how many bytes a token has */
        log_line("step %lld: validation loss %.4f", (long long)run->step, evaluation.loss);
    }
    tensorboard_flush(&run->board);
    return true;
}

/* Ends an evaluation of hours at the first signal. */
static bool go_on(void *context, const CoreSet *set, size_t index, const CoreOutcome *outcome,
                  Error *error) {
    (void)context, (void)set, (void)index, (void)outcome;
    return !interrupt_requested() || fail(error, "CORE was interrupted");
}

static void report_core(Run *run, const CoreReport *report) {
    const Core *core = run->settings->core;
    metrics_core(&run->log, run->step, report->core, core->present, core->count);
    tensorboard_scalar(&run->board, (double)time(NULL), run->step, "core", report->core);
    tensorboard_flush(&run->board);
    log_line("step %lld: CORE %.4f (%zu of %zu tasks)", (long long)run->step, report->core,
             core->present, core->count);
}

bool evaluate_core(Run *run, TrainResult *result, Error *error) {
    CoreReport report;
    const CoreWatcher watcher = {.example = go_on};
    bool done = core_evaluate(run->settings->core, &run->inference, &watcher, &report, error);
    if (done) report_core(run, &report), result->core = report.core;
    core_report_free(&report);
    result->interrupted = !done && interrupt_requested();
    return done || result->interrupted;
}
