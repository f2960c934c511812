/* SIGINT and SIGTERM: the first asks for a clean end after the current step, the second ends at once. */
#ifndef HEARTH_TRAIN_INTERRUPT_H
#define HEARTH_TRAIN_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);
void interrupt_remove(void);
bool interrupt_requested(void);

#endif
