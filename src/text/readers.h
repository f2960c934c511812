/* What the readers of JSON forms share. */
#ifndef HEARTH_TEXT_READERS_H
#define HEARTH_TEXT_READERS_H

#include "text/vocabulary.h"

/* One entry of a vocabulary: the token in the byte alphabet, and its id. */
bool read_token(Tokenizer *tokenizer, const char *text, size_t size, const json_t *id,
                TokenKind kind, Error *error);

/* One merge, its two tokens in the byte alphabet. */
bool read_merge(Tokenizer *tokenizer, const char *left, size_t left_size, const char *right,
                size_t right_size, Error *error);

/* The same from "left right". */
bool read_merge_line(Tokenizer *tokenizer, const char *line, size_t size, Error *error);

#endif
