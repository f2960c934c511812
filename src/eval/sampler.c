#include "eval/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

/* Tokens are ranked with a heap sort that stops early: order[0 .. heap_size) is a heap with the
 * most likely token on top; the tokens taken off it stand behind, the most likely last. So the few
 * that the filters keep cost V + k log V. */
struct Sampler {
    SamplingSettings settings;
    int64_t vocab;
    float *weights; /* [vocab] exp((logit - largest) / temperature): 1 for the most likely */
    int32_t *order; /* [vocab] */
    int64_t heap_size;
};

static bool check_settings(const SamplingSettings *s, Error *error) {
    if (!(s->temperature >= 0 && isfinite(s->temperature)))
        return fail(error, "temperature is %g; it must be 0 (always the most likely token) or more",
                    s->temperature);
    if (s->top_k < 0)
        return fail(error, "top-k is %lld; it must be 0 (off) or more", (long long)s->top_k);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return fail(error, "top-p is %g; it must be above 0 and at most 1 (off)", s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return fail(error, "min-p is %g; it must be from 0 (off) to 1", s->min_p);
    return true;
}

Sampler *sampler_new(const SamplingSettings *settings, int64_t vocab, Error *error) {
    if (!check_settings(settings, error)) return NULL;
    if (vocab < 1 || vocab > INT32_MAX) {
        fail(error, "cannot sample from a vocabulary of %lld tokens", (long long)vocab);
        return NULL;
    }
    Sampler *sampler = allocate(1, sizeof *sampler, error);
    if (!sampler) return NULL;
    sampler->settings = *settings;
    sampler->vocab = vocab;
    sampler->weights = allocate((size_t)vocab, sizeof *sampler->weights, error);
    if (sampler->weights) sampler->order = allocate((size_t)vocab, sizeof *sampler->order, error);
    if (sampler->order) return sampler;
    sampler_free(sampler);
    return NULL;
}

void sampler_free(Sampler *sampler) {
    if (!sampler) return;
    free(sampler->weights);
    free(sampler->order);
    free(sampler);
}

/* The first of the largest logits; -1 with an error when there is no distribution to draw from. */
static int64_t most_likely(const float *logits, int64_t vocab, Error *error) {
    int64_t best = 0;
    for (int64_t i = 0; i < vocab; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY) {
            fail(error,
                 "the logit of token %lld is %f; the checkpoint's weights are damaged or its "
                 "training diverged",
                 (long long)i, (double)logits[i]);
            return -1;
        }
        if (logits[i] > logits[best]) best = i;
    }
    if (logits[best] == -INFINITY) {
        fail(error, "every logit is -infinity: there is no token to draw");
        return -1;
    }
    return best;
}

static bool ranks_before(const Sampler *sampler, int32_t a, int32_t b) {
    float x = sampler->weights[a], y = sampler->weights[b];
    return x > y || (x == y && a < b);
}

static void sift_down(Sampler *sampler, int64_t at) {
    int32_t *order = sampler->order, moved = order[at];
    for (int64_t child; (child = 2 * at + 1) < sampler->heap_size; at = child) {
        if (child + 1 < sampler->heap_size && ranks_before(sampler, order[child + 1], order[child]))
            child++;
        if (!ranks_before(sampler, order[child], moved)) break;
        order[at] = order[child];
    }
    order[at] = moved;
}

static void build_heap(Sampler *sampler) {
    sampler->heap_size = sampler->vocab;
    for (int64_t i = 0; i < sampler->vocab; i++) sampler->order[i] = (int32_t)i;
    for (int64_t i = sampler->vocab / 2; i-- > 0;) sift_down(sampler, i);
}

/* The token of that rank, 0 for the most likely. */
static int32_t ranked(Sampler *sampler, int64_t rank) {
    int32_t *order = sampler->order;
    while (sampler->vocab - sampler->heap_size <= rank) {
        int64_t last = --sampler->heap_size;
        int32_t top = order[0];
        order[0] = order[last];
        order[last] = top;
        sift_down(sampler, 0);
    }
    return order[sampler->vocab - 1 - rank];
}

static double sum_weights(const Sampler *sampler) {
    double sum = 0;
    for (int64_t i = 0; i < sampler->vocab; i++) sum += (double)sampler->weights[i];
    return sum;
}

/* How many tokens of the ranking the filters keep, at least one; *kept_sum is their weight. */
static int64_t apply_filters(Sampler *sampler, double *kept_sum) {
    const SamplingSettings *s = &sampler->settings;
    bool all = s->top_k == 0 || s->top_k >= sampler->vocab;
    int64_t most = all ? sampler->vocab : s->top_k, kept = 0;
    double total = 0, sum = 0;
    if (all)
        total = sum_weights(sampler);
    else
        for (int64_t i = 0; i < most; i++) total += (double)sampler->weights[ranked(sampler, i)];
    while (kept < most && sum < s->top_p * total) {
        double weight = (double)sampler->weights[ranked(sampler, kept)];
        if (kept && weight < s->min_p) break;
        sum += weight;
        kept++;
    }
    *kept_sum = sum;
    return kept;
}

/* Uniform in [0, 1) with 53 bits, so that rare tokens keep their chance. */
static double draw(const Sampler *sampler, int64_t position) {
    uint64_t stream = random_stream(RANDOM_SAMPLE, 0), bound = (uint64_t)1 << 53;
    return (double)random_below(sampler->settings.seed, stream, (uint64_t)position, bound) *
           0x1p-53;
}

bool sampler_next(Sampler *sampler, const float *logits, int64_t position, uint32_t *id,
                  Error *error) {
    const SamplingSettings *s = &sampler->settings;
    int64_t best = most_likely(logits, sampler->vocab, error);
    if (best < 0) return false;
    *id = (uint32_t)best;
    if (s->temperature == 0 || s->top_k == 1) return true;
    for (int64_t i = 0; i < sampler->vocab; i++)
        sampler->weights[i] =
            (float)exp(((double)logits[i] - (double)logits[best]) / s->temperature);

    bool filtered = s->top_k || s->top_p < 1 || s->min_p > 0;
    double sum;
    int64_t kept = sampler->vocab;
    if (filtered) {
        build_heap(sampler);
        kept = apply_filters(sampler, &sum);
    } else {
        sum = sum_weights(sampler);
    }
    double left = draw(sampler, position) * sum;
    for (int64_t i = 0; i < kept; i++) {
        int64_t token = filtered ? ranked(sampler, i) : i;
        double weight = (double)sampler->weights[token];
        if (weight > 0) *id = (uint32_t)token; /* rounding may use up the last one */
        left -= weight;
        if (left < 0) break;
    }
    return true;
}
