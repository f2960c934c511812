/* Drawing the next token from a row of logits. */
#ifndef HEARTH_EVAL_SAMPLER_H
#define HEARTH_EVAL_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The filters apply in this order to p = softmax(logits / temperature). */
typedef struct SamplingSettings {
    double temperature; /* 0: always the most likely token */
    int64_t top_k;      /* keep the k most likely; 0: all */
    double top_p;       /* keep the fewest, most likely first, that make up this share of what top_k
                           left; 1: all */
    double min_p;       /* keep those at least this fraction as likely as the most likely; 0: all */
    uint64_t seed;
} SamplingSettings;

typedef struct Sampler Sampler;

/* A sampler over ids 0 … vocab-1; NULL with an error when a setting is out of its range. */
Sampler *sampler_new(const SamplingSettings *settings, int64_t vocab, Error *error);
void sampler_free(Sampler *sampler);

/* Draws the token at `position` of the sequence from logits[vocab]: a pure function of settings,
 * logits and position. Equally likely tokens rank by id. A logit may be -infinity (never drawn);
 * NaN, +infinity, or nothing but -infinity is an error. Allocates nothing. */
bool sampler_next(Sampler *sampler, const float *logits, int64_t position, uint32_t *id,
                  Error *error);

#endif
