/* What a Pattern is, for the splitter. */
#ifndef HEARTH_TEXT_PATTERN_H
#define HEARTH_TEXT_PATTERN_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/splitter.h"
#include "text/words.h"

typedef struct NamedPattern {
    const char *name, *expression;
    WordEnd *word_end;
} NamedPattern;

struct Pattern {
    char *text;
    const NamedPattern *named; /* or NULL: then it is run by PCRE2 */
    pcre2_code *code;
    pcre2_match_context *limits;
};

#endif
