#include "base/threads.h"

#include <omp.h>

int thread_count(void) {
    return omp_get_max_threads();
}

void thread_count_set(int count) {
    omp_set_num_threads(count);
}
