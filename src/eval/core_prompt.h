/* The text that a model is given for one choice of an example. */
#ifndef HEARTH_EVAL_CORE_PROMPT_H
#define HEARTH_EVAL_CORE_PROMPT_H

#include "eval/core_bundle.h"

/* What is asked: example `index` of a task, after the examples `shots` (of number task->shots). */
typedef struct CoreQuestion {
    const CoreTask *task;
    const CoreItem *items;
    size_t index;
    const size_t *shots;
} CoreQuestion;

/* Replaces *out by the prompt with its answer: each shot is context, delimiter, its right answer and an empty
 * line. In language modeling contexts are stripped of white space. */
bool core_prompt(const CoreQuestion *question, size_t choice, Bytes *out, Error *error);

/* The same without the last answer, stripped of white space: what the answer continues. */
bool core_prompt_unanswered(const CoreQuestion *question, Bytes *out, Error *error);

#endif
