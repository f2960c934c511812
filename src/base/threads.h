/* How many threads to use. Loops are parallel through OpenMP; long-lived background work (the data
 * loader) is a pthread of its own. */
#ifndef HEARTH_BASE_THREADS_H
#define HEARTH_BASE_THREADS_H

/* The processors this process may run on (respects taskset and OMP_NUM_THREADS), at least 1. */
int thread_count(void);

/* Sets what later parallel loops use; from --threads. */
void thread_count_set(int count);

#endif
