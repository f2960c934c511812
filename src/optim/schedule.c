#include "optim/schedule.h"

#include <math.h>

static double cooldown_steps(const Schedule *schedule) {
    return rint(schedule->cooldown * (double)schedule->steps);
}

static double descent(const Schedule *schedule, double begin, double at, double end) {
    double share = end > begin ? (at - begin) / (end - begin) : 0;
    share = fmin(fmax(share, 0), 1);
    double height = schedule->shape == SCHEDULE_COSINE ? 0.5 * (1 + cos(M_PI * share)) : 1 - share;
    return schedule->peak * (schedule->floor + (1 - schedule->floor) * height);
}

double schedule_rate(const Schedule *schedule, int64_t step) {
    if (step <= schedule->warmup) return schedule->peak * (double)step / (double)schedule->warmup;
    double end = (double)schedule->steps;
    if (schedule->shape == SCHEDULE_WSD)
        return descent(schedule, end - cooldown_steps(schedule), (double)(step - 1), end);
    return descent(schedule, (double)schedule->warmup, (double)step, end);
}

double schedule_momentum(const Schedule *schedule, int64_t step) {
    const double first = 0.85, most = 0.97, last = 0.90, rise = 400;
    double done = (double)(step - 1), fall = cooldown_steps(schedule);
    double begin = (double)schedule->steps - fall;
    if (done < rise) return first + (most - first) * done / rise;
    if (done < begin || fall <= 0) return most;
    return most + (last - most) * (done - begin) / fall;
}

double schedule_weight_decay(const Schedule *schedule, int64_t step) {
    return 0.5 * (1 + cos(M_PI * (double)(step - 1) / (double)schedule->steps));
}
