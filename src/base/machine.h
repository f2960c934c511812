/* The memory of this machine, as this process may use it: a container's limit counts. */
#ifndef HEARTH_BASE_MACHINE_H
#define HEARTH_BASE_MACHINE_H

#include <stdint.h>

/* In all, free now, and resident in this process, in bytes. */
int64_t memory_installed(void);
int64_t memory_available(void);
int64_t memory_resident(void);

#endif
