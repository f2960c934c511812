/* Examples in tokens, as they are scored: what all prompts of an example begin with, and what is
 * different. */
#ifndef HEARTH_EVAL_CORE_EXAMPLE_H
#define HEARTH_EVAL_CORE_EXAMPLE_H

#include "eval/core_prompt.h"
#include "text/tokenizer.h"

/* The rest of a prompt behind the prefix. The tokens from `scored` on (at least 1) are predicted, each from
 * what stands before it; there may be none. */
typedef struct CoreBranch {
    size_t first, count; /* in the example's tokens */
    size_t scored;       /* counted from the branch's first token */
} CoreBranch;

typedef struct CoreExample {
    uint32_t *tokens; /* the prefix, then the branches */
    size_t prefix; /* tokens; nothing in it is scored. 0 when the prompts share only their first */
    CoreBranch *branches;
    size_t branch_count;
    size_t gold;
    int64_t line; /* in the task's file */
} CoreExample;

typedef struct CoreTokenizing {
    const Tokenizer *tokenizer;
    uint32_t separator; /* before every prompt */
    size_t longest;     /* tokens of a prompt; of those that are longer the beginning is left out */
} CoreTokenizing;

/* Fails where the tokens of a prompt do not begin those of the prompt with its answer (language modeling).
 * Release with core_example_free(). */
bool core_example_make(CoreExample *example, const CoreQuestion *question,
                       const CoreTokenizing *tokenizing, Error *error);
void core_example_free(CoreExample *example);

/* Tokens of its longest prompt. */
size_t core_example_longest(const CoreExample *example);

/* Tokens that the model has to look at: its share of the work. */
size_t core_example_tokens(const CoreExample *example);

#endif
