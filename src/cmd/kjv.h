/* The demo's own text: the King James Bible, as Debian's package bible-kjv prints it. */
#ifndef HEARTH_CMD_KJV_H
#define HEARTH_CMD_KJV_H

#include "base/error.h"

/* Writes the text, 4.1 MB: a verse a line, without its number; an empty line after each of the 1189
 * chapters. */
bool kjv_write(const char *path, Error *error);

#endif
