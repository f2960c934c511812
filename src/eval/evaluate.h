/* Loss, and bits per byte, which compares models whatever their tokenizers. */
#ifndef HEARTH_EVAL_EVALUATE_H
#define HEARTH_EVAL_EVALUATE_H

#include "data/loader.h"
#include "data/reader.h"
#include "eval/inference.h"

typedef struct Evaluation {
    double loss;    /* mean over the counted targets, in nats */
    double bpb;     /* nats over targets that have bytes / (ln 2 * those bytes). Special tokens have
                       none and are left out; NaN when no tokenizer says which. */
    int64_t tokens; /* targets counted in the loss */
    int64_t bytes;
} Evaluation;

/* Over the split's rows in order, from the first, at most about `tokens` of them (0 = all), with
 * the program's evaluation section. The same rows every time. `progress` shows how far it is. */
bool evaluate_dataset(const Inference *inference, const Dataset *dataset, Split split,
                      Packing packing, int64_t tokens, bool progress, Evaluation *result,
                      Error *error);

/* Over documents of text, each after the tokenizer's separator (without one a document's first
 * token has nothing to be predicted from and is not counted). Documents share rows of T; where one
 * goes on in the next row, that row repeats its last T/2 tokens, so that every token is predicted
 * from at least as many where there are. Always shows how far it is. */
bool evaluate_text(const Inference *inference, Reader *reader, Evaluation *result, Error *error);

#endif
