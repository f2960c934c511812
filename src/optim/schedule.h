/* Learning-rate schedules: a pure function of the step, so that a resumed run goes on where it was. */
#ifndef HEARTH_OPTIM_SCHEDULE_H
#define HEARTH_OPTIM_SCHEDULE_H

#include <stdint.h>

typedef enum ScheduleShape {
    SCHEDULE_COSINE, /* half a cosine from the peak to the floor */
    SCHEDULE_LINEAR, /* a straight line from the peak to the floor */
    SCHEDULE_WSD,    /* constant, then a straight line over the last `cooldown` of the steps */
} ScheduleShape;

typedef struct Schedule {
    ScheduleShape shape;
    double peak;
    double floor;    /* share of the peak that is left at the end */
    double cooldown; /* WSD: share of all steps */
    int64_t warmup;  /* steps of linear rise: step s has peak * s / warmup */
    int64_t steps;   /* of the whole run */
} Schedule;

/* The rate of step 1..steps. */
double schedule_rate(const Schedule *schedule, int64_t step);

#endif
