#include "train/status.h"

#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "base/units.h"

static const double PIPE_INTERVAL = 2; /* seconds between lines that no terminal rewrites */

Status status_start(int64_t first_step, int64_t last_step) {
    return (Status){.started = seconds_now(), .first_step = first_step, .last_step = last_step};
}

/* The clock time at which a run that takes `left` more seconds ends. */
static void format_finish(char out[32], double left) {
    time_t end = time(NULL) + (time_t)left;
    struct tm local;
    localtime_r(&end, &local);
    strftime(out, 32, left > 20 * 3600 ? "%a %d %b %H:%M" : "%H:%M:%S", &local);
}

void status_show(Status *status, const StepMetrics *metrics) {
    double now = seconds_now();
    bool ends = metrics->step == status->last_step || metrics->step == status->first_step + 1;
    if (!log_is_terminal() && !ends && now - status->shown < PIPE_INTERVAL) return;
    status->shown = now;
    /* All time since the start counts, so evaluations and checkpoints to come are in what is left. */
    double each = (now - status->started) / (double)(metrics->step - status->first_step);
    double left = each * (double)(status->last_step - metrics->step);
    char speed[32], remaining[32], finish[32];
    format_finish(finish, left);
    log_status("step %lld/%lld  loss %.4f  norm %.2f  lr %.2e  %s tok/s  mfu %.1f%%  data %.1f%%  "
               "%s left, "
               "ends %s",
               (long long)metrics->step, (long long)status->last_step, metrics->loss,
               metrics->grad_norm, metrics->lr, format_count(speed, metrics->tokens_per_s),
               100 * metrics->mfu, 100 * metrics->data_wait_ms / metrics->step_ms,
               format_duration(remaining, left), finish);
}
