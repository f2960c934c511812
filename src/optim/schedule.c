#include "optim/schedule.h"

#include <math.h>

double schedule_rate(const Schedule *schedule, int64_t step) {
    if (step <= schedule->warmup) return schedule->peak * (double)step / (double)schedule->warmup;
    double begin = (double)schedule->warmup, end = (double)schedule->steps;
    if (schedule->shape == SCHEDULE_WSD) begin = fmax(begin, end - schedule->cooldown * end);
    double share = end > begin ? ((double)step - begin) / (end - begin) : 0; /* of the descent */
    share = fmin(fmax(share, 0), 1);
    double height = schedule->shape == SCHEDULE_COSINE ? 0.5 * (1 + cos(M_PI * share)) : 1 - share;
    return schedule->peak * (schedule->floor + (1 - schedule->floor) * height);
}
