/* A corpus of a single document: its tokens wait in a file until it is known whether another document
 * follows; if none does, the last part becomes the validation split. */
#ifndef HEARTH_DATA_HOLDOUT_H
#define HEARTH_DATA_HOLDOUT_H

#include "data/split_writer.h"
#include "text/tokenizer.h"

typedef struct Spool Spool;

Spool *spool_open(const char *directory, Error *error);
bool spool_write(Spool *spool, const uint32_t *tokens, size_t count, Error *error);
int64_t spool_tokens(const Spool *spool);
/* Copies tokens first..end-1 into a split. */
bool spool_copy(Spool *spool, int64_t first, int64_t end, SplitWriter *writer, Error *error);
/* The token with which the last `fraction` begins: the next one that starts a line, or else a word.
 * *bytes is the text before it. From 1 to spool_tokens() - 1, so there must be two tokens. */
bool spool_cut(Spool *spool, double fraction, const Tokenizer *tokenizer, int64_t *cut,
               int64_t *bytes, Error *error);
/* Removes the file; NULL is allowed. */
void spool_free(Spool *spool);

#endif
