/* What a Pattern is, for the splitter. */
#ifndef HEARTH_TEXT_PATTERN_H
#define HEARTH_TEXT_PATTERN_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/splitter.h"

struct Pattern {
    char *text;
    bool named;
    pcre2_code *code;
    pcre2_match_context *limits;
};

#endif
