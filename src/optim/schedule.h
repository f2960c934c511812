/* Schedules: pure functions of the step, so that a resumed run goes on where it was. */
#ifndef HEARTH_OPTIM_SCHEDULE_H
#define HEARTH_OPTIM_SCHEDULE_H

#include <stdint.h>

typedef enum ScheduleShape {
    SCHEDULE_COSINE, /* half a cosine from the peak to the floor */
    SCHEDULE_LINEAR, /* a straight line from the peak to the floor */
    SCHEDULE_WSD, /* constant, then a straight line over the last `cooldown` of the steps, which would
                        reach the floor one step after the last, as nanochat's does */
} ScheduleShape;

typedef struct Schedule {
    ScheduleShape shape;
    double peak;
    double floor;    /* share of the peak that is left at the end */
    double cooldown; /* WSD: share of all steps, rounded to whole ones */
    int64_t warmup;  /* steps of linear rise: step s has peak * s / warmup */
    int64_t steps;   /* of the whole run */
} Schedule;

/* The rate of step 1..steps. */
double schedule_rate(const Schedule *schedule, int64_t step);

/* Muon's momentum in nanochat: 0.85 to 0.97 over the first 400 steps, then 0.97, and down to 0.90 across
 * the cooldown, which every shape of schedule has for this. */
double schedule_momentum(const Schedule *schedule, int64_t step);

/* What Muon's weight decay is multiplied by: half a cosine from 1 to 0 over all steps. */
double schedule_weight_decay(const Schedule *schedule, int64_t step);

#endif
