#include "cmd/chart.h"

enum { WIDEST = 120, EIGHTHS = 8 };

/* Filled from below by 0 to 8 eighths (Unicode block elements). */
static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

static double column_mean(const double *values, size_t count, size_t column, size_t columns) {
    size_t first = column * count / columns, end = (column + 1) * count / columns;
    double sum = 0;
    for (size_t i = first; i < end; i++) sum += values[i];
    return sum / (double)(end - first);
}

void chart_draw(FILE *file, const double *values, size_t count, size_t width, size_t height) {
    if (width > WIDEST) width = WIDEST;
    if (width > count) width = count;
    if (!width || !height) return;
    double columns[WIDEST], low = 0, high = 0;
    for (size_t i = 0; i < width; i++) {
        columns[i] = column_mean(values, count, i, width);
        if (i == 0 || columns[i] < low) low = columns[i];
        if (i == 0 || columns[i] > high) high = columns[i];
    }
    double range = high > low ? high - low : 1;
    for (size_t row = height; row-- > 0;) {
        if (row == height - 1)
            fprintf(file, "%8.2f ┤", high);
        else if (row == 0)
            fprintf(file, "%8.2f ┤", low);
        else
            fprintf(file, "%8s │", "");
        for (size_t i = 0; i < width; i++) {
            /* The lowest column still shows an eighth. */
            double filled = 1 + (columns[i] - low) / range * (double)(height * EIGHTHS - 1);
            double here = filled - (double)(row * EIGHTHS);
            fputs(blocks[here < 0 ? 0 : here > EIGHTHS ? EIGHTHS : (int)here], file);
        }
        fputc('\n', file);
    }
}
