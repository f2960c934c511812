#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool status_open, quiet_lines;

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool log_is_terminal(void) {
    return isatty(STDERR_FILENO) == 1;
}

void log_set_quiet(bool quiet) {
    quiet_lines = quiet;
}

bool log_is_quiet(void) {
    return quiet_lines;
}

static void clear_status(void) {
    if (status_open) fputs("\r\033[K", stderr);
    status_open = false;
}

static void print_line(const char *prefix, const char *format, va_list arguments) {
    pthread_mutex_lock(&lock);
    clear_status();
    fputs(prefix, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

void log_line(const char *format, ...) {
    if (quiet_lines) return;
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
}

void log_warning(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("warning: ", format, arguments);
    va_end(arguments);
}

/* What fits on one line: a longer status would wrap, and then could not be rewritten in place. */
static int status_width(void) {
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col - 1 : 511;
}

void log_status(const char *format, ...) {
    if (quiet_lines) return;
    va_list arguments;
    va_start(arguments, format);
    if (!log_is_terminal()) {
        print_line("", format, arguments);
    } else {
        pthread_mutex_lock(&lock);
        char text[512];
        vsnprintf(text, sizeof text, format, arguments);
        fprintf(stderr, "\r\033[K%.*s", status_width(), text);
        fflush(stderr);
        status_open = true;
        pthread_mutex_unlock(&lock);
    }
    va_end(arguments);
}

void log_status_end(void) {
    pthread_mutex_lock(&lock);
    if (status_open) fputc('\n', stderr);
    status_open = false;
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

Progress progress_start(const char *label, uint64_t total) {
    double now = seconds_now();
    return (Progress){.label = label, .total = total, .started = now, .shown = now};
}

void progress_update(Progress *progress, uint64_t done) {
    double now = seconds_now(), interval = log_is_terminal() ? 0.1 : 5.0;
    double elapsed = now - progress->started;
    if (elapsed < 1.0 || now - progress->shown < interval) return;
    progress->shown = now;
    char left[32];
    if (!progress->total || !done) {
        log_status("%s: %s so far", progress->label, format_duration(left, elapsed));
        return;
    }
    double share = (double)done / (double)progress->total;
    if (share > 1) share = 1;
    log_status("%s: %.1f%%, %s left", progress->label, 100 * share,
               format_duration(left, elapsed * (1 - share) / share));
}

void progress_end(Progress *progress) {
    (void)progress;
    pthread_mutex_lock(&lock);
    clear_status();
    pthread_mutex_unlock(&lock);
}
