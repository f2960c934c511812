/* Initialisation, the one device and its context. */
#ifndef TEST_CUDA_CONTEXT_H
#define TEST_CUDA_CONTEXT_H

#include "driver.h"

namespace driver {

/* Adds to the list of what the program has not given back, if that is something. */
void report_leak(int64_t count, const char *noun);

/* Each says what it has that was not given back. */
void report_memory_leaks();
void report_stream_leaks();
void report_event_leaks();
void report_graph_leaks();
void report_module_leaks();

} // namespace driver

#endif
