/* The text that a dataset holds out, as it was: what compressors are measured on beside the model. */
#ifndef HEARTH_CMD_HELD_OUT_H
#define HEARTH_CMD_HELD_OUT_H

#include "base/memory.h"

/* Appends the text of the validation split's tokens, without special tokens. The dataset must have been
 * made by `data build`, which puts the tokenizer beside it. */
bool held_out_text(const char *dataset, Bytes *text, Error *error);

#endif
