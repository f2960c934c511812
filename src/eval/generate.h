/* Generation: tokens after a prompt, through the program's prefill and decode sections. */
#ifndef HEARTH_EVAL_GENERATE_H
#define HEARTH_EVAL_GENERATE_H

#include "eval/inference.h"
#include "eval/sampler.h"

/* The tokens that `text` begins a document with: the tokenizer's separator, if it has one, then the
 * text. None at all is an error, and so is a tokenizer that is NULL because the checkpoint has
 * none. */
bool prompt_encode(const Tokenizer *tokenizer, const void *text, size_t size, Tokens *ids,
                   Error *error);

typedef struct Generation {
    const uint32_t *prompt; /* at least one token */
    int64_t prompt_count;
    int64_t max_tokens; /* generated at most; prompt and these must fit the context */
    int64_t end_token;  /* generation ends with it (it is not reported); -1 = none */
    /* Called with each new token; false ends the generation. */
    bool (*token)(void *context, uint32_t id);
    void *context;
} Generation;

/* Whether the prompt is not empty and there is room in the context; generate() makes sure itself.
 */
bool generation_check(const Inference *inference, const Generation *generation, Error *error);

/* The sampler's vocabulary may be smaller than the model's: then the ids beyond are never drawn. */
bool generate(const Inference *inference, Sampler *sampler, const Generation *generation,
              Error *error);

#endif
