#include "train/interrupt.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t requests;
static struct sigaction previous_int, previous_term;

static void count_request(int signal_number) {
    if (++requests > 1) _exit(128 + signal_number);
}

void interrupt_install(void) {
    struct sigaction action = {.sa_handler = count_request, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    requests = 0;
    sigaction(SIGINT, &action, &previous_int);
    sigaction(SIGTERM, &action, &previous_term);
}

void interrupt_remove(void) {
    sigaction(SIGINT, &previous_int, NULL);
    sigaction(SIGTERM, &previous_term, NULL);
}

bool interrupt_requested(void) {
    return requests > 0;
}
