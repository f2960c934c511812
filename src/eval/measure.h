/* Losses of batches, added up: what every evaluation is made of. */
#ifndef HEARTH_EVAL_MEASURE_H
#define HEARTH_EVAL_MEASURE_H

#include "eval/evaluate.h"

typedef struct Measure {
    const Inference *inference;
    float *losses; /* [B,T] of the last batch */
    int32_t
        *token_bytes; /* [vocab] bytes of text that each token stands for: 0 for special tokens */
    uint32_t vocab;   /* 0 without a tokenizer */
    double nats;      /* over all targets */
    double text_nats; /* over targets that stand for text */
    int64_t tokens, bytes;
} Measure;

/* The inference needs its evaluation section. Release with measure_free(), also after a failure. */
bool measure_start(Measure *measure, const Inference *inference, Error *error);
void measure_free(Measure *measure);

/* Runs one batch [B,T] and adds the losses of the targets that are not -1 in its first `rows` rows.
 */
bool measure_batch(Measure *measure, const int32_t *tokens, const int32_t *targets,
                   const int32_t *document_start, int64_t rows, Error *error);

/* Fails when there was no target at all; `source` names the data. */
bool measure_result(const Measure *measure, const char *source, Evaluation *result, Error *error);

#endif
