#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Suffix {
    const char *text;
    double factor;
} Suffix;

static bool parse_scaled(const char *text, const Suffix *suffixes, const char *what, double *out,
                         Error *error) {
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || errno == ERANGE || !isfinite(number) || strpbrk(text, "xXpP"))
        return fail(error, "'%s' is not %s", text, what);
    if (number < 0) return fail(error, "'%s' is negative; %s cannot be", text, what);
    for (const Suffix *suffix = suffixes; suffix->text; suffix++) {
        if (strcmp(end, suffix->text) != 0) continue;
        *out = number * suffix->factor;
        return true;
    }
    return fail(error, "'%s' is not %s: the suffix '%s' is not known", text, what, end);
}

static bool whole(const char *text, double value, int64_t *out, Error *error) {
    if (value >= 0x1p63) return fail(error, "'%s' is too large", text);
    if (value != floor(value)) return fail(error, "'%s' is not a whole number", text);
    *out = (int64_t)value;
    return true;
}

bool parse_bytes(const char *text, int64_t *out, Error *error) {
    static const Suffix suffixes[] = {
        {"", 1},         {"B", 1},        {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},
        {"T", 0x1p40},   {"KB", 0x1p10},  {"MB", 0x1p20},  {"GB", 0x1p30},  {"TB", 0x1p40},
        {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {NULL, 0}};
    double value;
    return parse_scaled(text, suffixes, "a size in bytes such as 512M or 16G", &value, error) &&
           whole(text, value, out, error);
}

bool parse_count(const char *text, int64_t *out, Error *error) {
    static const Suffix suffixes[] = {{"", 1},        {"K", 1e3},     {"k", 1e3},  {"M", 1e6},
                                      {"B", 1e9},     {"G", 1e9},     {"T", 1e12}, {"Ki", 0x1p10},
                                      {"Mi", 0x1p20}, {"Gi", 0x1p30}, {NULL, 0}};
    double value;
    return parse_scaled(text, suffixes, "a count such as 5000, 500K or 2.5B", &value, error) &&
           whole(text, round(value * 1024) / 1024, out, error);
}

bool parse_duration(const char *text, double *out, Error *error) {
    static const Suffix suffixes[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {NULL, 0}};
    return parse_scaled(text, suffixes, "a duration such as 90s, 15m or 2h", out, error);
}

char *format_bytes(char out[32], int64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    while (fabs(value) >= 1024 && unit < 4) value /= 1024, unit++;
    snprintf(out, 32, unit ? "%.2f %s" : "%.0f %s", value, bytes == 1 ? "byte" : units[unit]);
    return out;
}

char *format_count(char out[32], double count) {
    static const char *const units[] = {"", "K", "M", "B", "T"};
    int unit = 0;
    while (fabs(count) >= 1000 && unit < 4) count /= 1000, unit++;
    int decimals = unit == 0 ? 0 : fabs(count) < 10 ? 2 : 1;
    snprintf(out, 32, "%.*f%s", decimals, count, units[unit]);
    return out;
}

char *format_duration(char out[32], double seconds) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 3e9) {
        snprintf(out, 32, "unknown");
        return out;
    }
    long total = lround(seconds);
    if (total < 1)
        snprintf(out, 32, "%.0fms", 1e3 * seconds);
    else if (total < 60)
        snprintf(out, 32, "%lds", total);
    else if (total < 3600)
        snprintf(out, 32, "%ldm %02lds", total / 60, total % 60);
    else if (total < 86400)
        snprintf(out, 32, "%ldh %02ldm", total / 3600, total / 60 % 60);
    else
        snprintf(out, 32, "%ldd %02ldh", total / 86400, total / 3600 % 24);
    return out;
}
