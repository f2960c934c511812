/* A curve in the terminal. */
#ifndef HEARTH_CMD_CHART_H
#define HEARTH_CMD_CHART_H

#include <stddef.h>
#include <stdio.h>

/* Draws values[count] from left to right as an area of `width` columns and `height` rows, each column the
 * mean of the values that fall into it, with the largest and the smallest column's value at the side. */
void chart_draw(FILE *file, const double *values, size_t count, size_t width, size_t height);

#endif
