/* The training loop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "train/evaluation.h"
#include "train/interrupt.h"
#include "train/run.h"
#include "train/samples.h"
#include "train/status.h"
#include "train/train.h"

enum { SKIPS_MOST = 10 }; /* steps in a row whose gradient is not finite, before giving up */

/* What one optimizer step gathers. */
typedef struct StepSums {
    int64_t targets;  /* that count */
    double data_wait; /* seconds */
} StepSums;

/* Forward and backward of the next micro-batch. */
static bool run_micro_batch(Run *run, const StepScalars *scalars, StepSums *sums, Error *error) {
    const Backend *backend = run->plan.backend;
    const Program *program = &run->plan.program;
    int64_t count = program->B * program->T;
    Batch batch;
    if (!loader_next(run->loader, &batch, &sums->data_wait, error)) return false;
    backend->upload(run->executor, program->tokens, 0, batch.tokens, count * 4);
    backend->upload(run->executor, program->targets, 0, batch.targets, count * 4);
    backend->upload(run->executor, program->document_start, 0, batch.document_start, count * 4);
    sums->targets += batch.target_count;
    return backend->run(run->executor, SECTION_MICRO_BATCH, scalars, error);
}

static StepScalars step_scalars(const TrainSettings *settings, int64_t step) {
    const Schedule *schedule = &settings->schedule;
    return (StepScalars){.learning_rate = (float)schedule_rate(schedule, step),
                         .momentum = (float)schedule_momentum(schedule, step),
                         .weight_decay = (float)schedule_weight_decay(schedule, step),
                         .step = step,
                         .seed = settings->seed};
}

/* One optimizer step; fills the metrics of it. All of it is queued before the device is waited for, once:
 * for the losses and the norm. */
static bool run_step(Run *run, StepMetrics *metrics, Error *error) {
    const TrainSettings *settings = run->settings;
    const Backend *backend = run->plan.backend;
    const Program *program = &run->plan.program;
    double started = seconds_now();
    StepSums sums = {0};
    StepScalars scalars = step_scalars(settings, run->step + 1);
    int64_t micro_batches = settings_rows(settings) / program->B;
    double loss = 0; /* nats over all counted targets */
    float norm;
    backend->upload(run->executor, program->loss_sum, 0, &loss, sizeof loss);
    for (int64_t i = 0; i < micro_batches; i++)
        if (!run_micro_batch(run, &scalars, &sums, error)) return false;
    /* The backward scaled by 1 / batch tokens; this makes it a mean over the targets that counted. */
    scalars.gradient_scale = sums.targets ? (float)settings->batch_tokens / (float)sums.targets : 0;
    if (!backend->run(run->executor, SECTION_UPDATE, &scalars, error) ||
        !backend->download(run->executor, program->gradient_norm, 0, &norm, sizeof norm, error) ||
        !backend->download(run->executor, program->loss_sum, 0, &loss, sizeof loss, error))
        return false;
    run->step++;
    run->tokens += settings->batch_tokens;
    run->sample = loader_position(run->loader);
    double flops = step_plan_flops_per_token(&run->plan);
    double seconds = seconds_now() - started, rate = (double)settings->batch_tokens / seconds;
    /* A step that beats the measured peak shows that something else ran while it was measured. */
    double *peak = &run->plan.device.matmul_flops;
    if (rate * flops > *peak) *peak = rate * flops;
    *metrics =
        (StepMetrics){.step = run->step,
                      .tokens = run->tokens,
                      .epoch = (double)run->sample / (double)loader_samples_per_epoch(run->loader),
                      .loss = sums.targets ? loss / (double)sums.targets : NAN,
                      .lr = (double)scalars.learning_rate,
                      .grad_norm = (double)norm,
                      .step_ms = 1e3 * seconds,
                      .tokens_per_s = rate,
                      .mfu = rate * flops / *peak,
                      .data_wait_ms = 1e3 * sums.data_wait,
                      .checkpoint_wait_ms = 1e3 * run->checkpoint_wait,
                      .mem_bytes = step_plan_taken(&run->plan)};
    run->checkpoint_wait = 0;
    return true;
}

static void log_step(Run *run, const StepMetrics *metrics) {
    double now = (double)time(NULL);
    metrics_step(&run->log, metrics);
    tensorboard_scalar(&run->board, now, metrics->step, "train/loss", metrics->loss);
    tensorboard_scalar(&run->board, now, metrics->step, "train/lr", metrics->lr);
    tensorboard_scalar(&run->board, now, metrics->step, "train/grad_norm", metrics->grad_norm);
    tensorboard_scalar(&run->board, now, metrics->step, "speed/tokens_per_s",
                       metrics->tokens_per_s);
    tensorboard_scalar(&run->board, now, metrics->step, "speed/mfu", metrics->mfu);
    tensorboard_flush(&run->board);
}

/* A step whose gradient is not finite left the weights as they were (the update skips it). A few are
 * bad luck, many are a diverged run. */
static bool check_finite(Run *run, const StepMetrics *metrics, int *skips, Error *error) {
    if (isfinite(metrics->grad_norm)) {
        *skips = 0;
        return true;
    }
    metrics_event(&run->log, "skip", run->step, "gradient norm %g; the update was left out",
                  metrics->grad_norm);
    log_warning("step %lld: the gradient is not finite; its update was left out",
                (long long)run->step);
    if (++*skips < SKIPS_MOST) return true;
    return fail(
        error,
        "%d steps in a row had a gradient that is not finite: the run has diverged. Go back to "
        "an earlier checkpoint with a lower --lr or a longer --warmup",
        SKIPS_MOST);
}

/* A checkpoint that cannot be written does not end the run: the earlier ones stand. */
static bool save(Run *run, double *saved, Error *error) {
    *saved = seconds_now();
    if (run_save(run, error)) {
        metrics_event(&run->log, "checkpoint", run->step, "written");
        return true;
    }
    metrics_event(&run->log, "checkpoint failed", run->step, "%s", error->message);
    log_warning("step %lld: no checkpoint was written: %s", (long long)run->step, error->message);
    return false;
}

static bool due(int64_t step, int64_t every) {
    return every > 0 && step % every == 0;
}

/* It may take hours, so it does not begin before the step is safe. */
static bool ask_core(Run *run, bool safe, TrainResult *result, Error *error) {
    if (safe) return evaluate_core(run, result, error);
    log_warning("step %lld: CORE is left out, as no checkpoint could be written before it",
                (long long)run->step);
    return true;
}

/* What follows a step: first the checkpoint, so that nothing after it can lose the run. There is none
 * while gradients are not finite: what it would push out may be the last good one. */
static bool after_step(Run *run, bool last, bool sound, double *saved, TrainResult *result,
                       Error *error) {
    const TrainSettings *settings = run->settings;
    bool timed =
        settings->checkpoint_seconds > 0 && seconds_now() - *saved >= settings->checkpoint_seconds;
    bool core_due = due(run->step, settings->core_every), safe = last;
    if ((due(run->step, settings->checkpoint_every) || timed || core_due) && sound && !last) {
        Error failure;
        safe = save(run, saved, &failure);
    }
    if (last && !save(run, saved, error)) return false;
    if (result->interrupted) return true;
    bool end = run->step == settings->steps;
    if ((due(run->step, settings->eval_every) || (end && settings->eval_every)) &&
        !evaluate_validation(run, result, error))
        return false;
    if ((core_due || (end && settings->core)) && !ask_core(run, safe, result, error)) return false;
    if (due(run->step, settings->sample_every) || (end && settings->sample_every))
        return print_sample(&run->inference, settings, run->step, error);
    return true;
}

static int by_value(const void *a, const void *b) {
    double left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

/* The speed that is reported at the end: the median of the last steps, at most this many. */
typedef struct Speeds {
    double values[512];
    int64_t count;
} Speeds;

static void speeds_add(Speeds *speeds, double value) {
    speeds->values[speeds->count++ % 512] = value;
}

static double speeds_median(Speeds *speeds) {
    int64_t count = speeds->count < 512 ? speeds->count : 512;
    if (!count) return NAN;
    qsort(speeds->values, (size_t)count, sizeof *speeds->values, by_value);
    return speeds->values[count / 2];
}

static bool loop(Run *run, TrainResult *result, Error *error) {
    const TrainSettings *settings = run->settings;
    int64_t last = settings->steps;
    if (settings->stop_after && run->step + settings->stop_after < last)
        last = run->step + settings->stop_after;
    Status status = status_start(run->step, last);
    Speeds speeds = {0};
    double saved = seconds_now();
    int skips = 0;
    bool done = true;
    while (done && run->step < last && !result->interrupted) {
        StepMetrics metrics;
        done = run_step(run, &metrics, error);
        if (!done) break;
        log_step(run, &metrics);
        status_show(&status, &metrics);
        speeds_add(&speeds, metrics.tokens_per_s);
        result->loss = metrics.loss;
        result->interrupted = interrupt_requested();
        done = check_finite(run, &metrics, &skips, error) &&
               after_step(run, run->step == last || result->interrupted, skips == 0, &saved, result,
                          error);
    }
    result->steps = run->step;
    result->tokens_per_s = speeds_median(&speeds);
    return done;
}

static void announce(Run *run) {
    long long step = run->step, steps = run->settings->steps;
    if (step < steps)
        metrics_event(&run->log, "start", step, "%lld steps to step %lld", steps - step, steps);
    else
        log_line(
            "all %lld steps are done already (the run is at %lld): give a longer horizon, such "
            "as --steps %lld, to train on",
            steps, step, 2 * step);
}

bool train(const TrainSettings *settings, const Dataset *dataset, const Tokenizer *tokenizer,
           const char *config, TrainResult *result, Error *error) {
    *result = (TrainResult){
        .loss = NAN, .tokens_per_s = NAN, .val_loss = NAN, .val_bpb = NAN, .core = NAN};
    Run run;
    interrupt_install();
    bool done = run_open(&run, settings, dataset, tokenizer, config, error);
    if (done) {
        announce(&run);
        result->planned_bytes = step_plan_peak(&run.plan);
        done = loop(&run, result, error);
        log_status_end();
        if (!done)
            metrics_event(&run.log, "error", run.step, "%s", error->message);
        else if (result->interrupted)
            log_line(
                "stopped by a signal at step %lld; 'hearth train --run-dir %s --resume' goes on",
                (long long)run.step, settings->run_directory);
        run_close(&run);
    }
    interrupt_remove();
    return done;
}
