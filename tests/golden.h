/* Golden files of training (tests/golden): the data that they were made with, and comparing what they hold of
 * a tensor: its norm, a projection that sees every element, and single elements. */
#ifndef HEARTH_TESTS_GOLDEN_H
#define HEARTH_TESTS_GOLDEN_H

#include <stdint.h>

#include "base/json.h"

enum { GOLDEN_SEED = 1234 };

/* Opens tests/golden/NAME; release with json_decref(). */
json_t *golden_read(const char *name);

/* Members that must be there. */
int64_t golden_integer(const json_t *json, const char *key);
double golden_number(const json_t *json, const char *key);
double golden_number_at(const json_t *json, const char *key, size_t index);
const char *golden_text(const json_t *json, const char *key);

/* The rows of a step, [B,T], by the rule in the files' READMEs. */
void golden_batch(int32_t *tokens, int32_t *targets, int64_t step, int64_t B, int64_t T,
                  int64_t vocab);

/* Relative differences. */
typedef struct GoldenDifference {
    double norm;
    double projection; /* relative to the norm */
    double element;    /* the largest; relative to the element and the root mean square of all */
} GoldenDifference;

/* How `scale` times the values differ from what an entry holds of tensor k. */
GoldenDifference golden_difference(const json_t *entry, size_t k, const float *values,
                                   int64_t count, double scale);

/* The larger of each. */
GoldenDifference golden_worse(GoldenDifference a, GoldenDifference b);

#endif
