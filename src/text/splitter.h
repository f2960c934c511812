/* The splitter: cuts text into the pieces (words, numbers, runs of spaces) that are tokenized one
 * by one, by a regular expression: the named ones as code (words.h), others run with PCRE2.
 *
 * Every byte of the text is in exactly one piece. Text is cut into runs of valid UTF-8 and runs of
 * bytes that are not; a run of the latter is a piece, and the pattern sees each run of the former
 * as a text of its own. What the pattern leaves unmatched between two matches is a piece too. A
 * match sees no further than SPLIT_WINDOW bytes from its start, so a piece is never longer than
 * that and a text of any size is split in linear time. */
#ifndef HEARTH_TEXT_SPLITTER_H
#define HEARTH_TEXT_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SPLIT_WINDOW = 1 << 20 };

/* A compiled pattern; immutable, so it may be used from many threads at once. */
typedef struct Pattern Pattern;

/* `text` is a regular expression or the name of one: gpt2, gpt4, cl100k, nanochat, o200k. \s and \S mean
 * Unicode white space as they do in the peers' engines, and $ the very end of the text. */
Pattern *pattern_compile(const char *text, Error *error);
void pattern_free(Pattern *pattern);

/* The regular expression itself, never a name. */
const char *pattern_text(const Pattern *pattern);

/* The expression of a name, or `text` itself when it is none. */
const char *pattern_expression(const char *text);

/* Whether the pieces on both sides of `position` (0 < position < size) are sure not to depend on
 * each other: the text may be cut there. Always false for a pattern that is not one of the named
 * ones. */
bool pattern_cuts(const Pattern *pattern, const uint8_t *text, size_t position);

typedef struct Splitter {
    const Pattern *pattern;
    const uint8_t *text;
    size_t size;
    size_t position;           /* where the next piece starts */
    size_t run_start, run_end; /* the run of valid UTF-8 around it; empty when it is over */
    void *match;               /* pcre2_match_data; NULL for a named pattern */
} Splitter;

typedef enum SplitResult { SPLIT_FAILED, SPLIT_PIECE, SPLIT_END } SplitResult;

bool splitter_start(Splitter *splitter, const Pattern *pattern, Error *error);
void splitter_stop(Splitter *splitter);
/* Sets the text to be split; it must stay until the last piece. */
void splitter_set_text(Splitter *splitter, const uint8_t *text, size_t size);
SplitResult splitter_next(Splitter *splitter, const uint8_t **piece, size_t *size, Error *error);

#endif
