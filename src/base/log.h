/* Messages to people, on stderr: lines, one updating status line, and progress of long work. */
#ifndef HEARTH_BASE_LOG_H
#define HEARTH_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* A line of its own; an open status line is cleared first. Thread-safe. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether stderr is a terminal, where a status line can be rewritten in place. */
bool log_is_terminal(void);

/* On a terminal replaces the status line; through a pipe prints a plain line. */
void log_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the status line, so that what is printed next starts on a fresh line. */
void log_status_end(void);

/* No lines, status or progress from now on (warnings stay): for --quiet and for tests. */
void log_set_quiet(bool quiet);
bool log_is_quiet(void);

/* Progress of work that may take over a second: nothing is shown before that; then the share done
 * and the time left, ten times a second on a terminal, every five seconds through a pipe. */
typedef struct Progress {
    const char *label; /* "tokenizing" */
    uint64_t total;    /* in any unit; 0 = unknown */
    double started, shown;
} Progress;
Progress progress_start(const char *label, uint64_t total);
void progress_update(Progress *progress, uint64_t done);
void progress_end(Progress *progress);

/* Seconds on a clock that never goes back. */
double seconds_now(void);

#endif
