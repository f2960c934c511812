#include "text/unicode.h"

#include <pthread.h>
#include <string.h>

uint8_t unicode_classes[UNICODE_POINTS];

static void load(void) {
    uint8_t *at = unicode_classes;
    for (const uint32_t *run = unicode_runs; *run; run++) {
        uint8_t class = *run & 7;
        if (class != CLASS_OTHER) memset(at, class, *run >> 3);
        at += *run >> 3;
    }
}

void unicode_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
}
