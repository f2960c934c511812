#include "golden.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "support.h"

enum { DATA_STREAM = 1000, PROJECTION_STREAM = 2000 };

json_t *golden_read(const char *name) {
    Error error;
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s", HEARTH_SOURCE, name);
    json_t *json = json_read_file(path, 1 << 20, &error);
    assert_done(json, error);
    return json;
}

int64_t golden_integer(const json_t *json, const char *key) {
    Error error;
    int64_t value;
    assert_done(json_get_integer(json, key, INT64_MIN, INT64_MAX, &value, &error), error);
    return value;
}

double golden_number(const json_t *json, const char *key) {
    Error error;
    double value;
    assert_done(json_get_number(json, key, &value, &error), error);
    return value;
}

double golden_number_at(const json_t *json, const char *key, size_t index) {
    const json_t *value = json_array_get(json_object_get(json, key), index);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

const char *golden_text(const json_t *json, const char *key) {
    Error error;
    const char *text = json_get_string(json, key, &error);
    assert_done(text, error);
    return text;
}

void golden_batch(int32_t *tokens, int32_t *targets, int64_t step, int64_t B, int64_t T,
                  int64_t vocab) {
    for (int64_t row = 0; row < B; row++) {
        uint32_t previous = 0;
        for (int64_t p = 0; p <= T; p++) {
            uint64_t index = (uint64_t)((step * B + row) * (T + 1) + p);
            uint32_t word = random_u32(GOLDEN_SEED, DATA_STREAM, index);
            uint32_t token =
                p == 0 || word >> 24 < 64 ? word % (uint32_t)vocab : (5 * previous + 7) % 31;
            if (p < T) tokens[row * T + p] = (int32_t)token;
            if (p > 0) targets[row * T + p - 1] = (int32_t)token;
            previous = token;
        }
    }
}

GoldenDifference golden_difference(const json_t *entry, size_t k, const float *values,
                                   int64_t count, double scale) {
    double squares = 0, projection = 0, norm = golden_number(entry, "norm");
    for (int64_t i = 0; i < count; i++) {
        double value = scale * (double)values[i];
        if (!isfinite(value)) return (GoldenDifference){INFINITY, INFINITY, INFINITY};
        double weight =
            (double)random_uniform(GOLDEN_SEED, PROJECTION_STREAM + k, (uint64_t)i) - 0.5;
        squares += value * value;
        projection += value * weight;
    }
    double projected = fabs(projection - golden_number(entry, "projection"));
    GoldenDifference worst = {.norm = fabs(sqrt(squares) / norm - 1),
                              .projection = projected / norm};
    const json_t *elements = json_object_get(entry, "elements");
    for (size_t e = 0; e < json_array_size(elements); e++) {
        const json_t *pair = json_array_get(elements, e);
        int64_t at = json_integer_value(json_array_get(pair, 0));
        double value = json_number_value(json_array_get(pair, 1));
        double difference = fabs(scale * (double)values[at] - value);
        worst.element =
            fmax(worst.element, difference / (fabs(value) + norm / sqrt((double)count)));
    }
    return worst;
}

GoldenDifference golden_worse(GoldenDifference a, GoldenDifference b) {
    return (GoldenDifference){.norm = fmax(a.norm, b.norm),
                              .projection = fmax(a.projection, b.projection),
                              .element = fmax(a.element, b.element)};
}
