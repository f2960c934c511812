#include "text/splitter.h"

#include <string.h>

#include "text/pattern.h"
#include "text/utf8.h"

bool splitter_start(Splitter *splitter, const Pattern *pattern, Error *error) {
    *splitter = (Splitter){.pattern = pattern};
    if (pattern->named) return true;
    splitter->match = pcre2_match_data_create(1, NULL);
    return splitter->match || fail_memory(error, sizeof(void *));
}

void splitter_stop(Splitter *splitter) {
    pcre2_match_data_free(splitter->match);
}

void splitter_set_text(Splitter *splitter, const uint8_t *text, size_t size) {
    splitter->text = text;
    splitter->size = size;
    splitter->position = splitter->run_start = splitter->run_end = 0;
}

/* A piece of bytes that begin no character. */
static size_t invalid_end(const Splitter *splitter) {
    size_t end = splitter->position, most = splitter->size;
    if (most - end > SPLIT_WINDOW) most = end + SPLIT_WINDOW;
    while (end < most && !utf8_character(splitter->text + end, splitter->size - end)) end++;
    return end;
}

/* The end of the piece that starts at run[start], as PCRE2 finds it; 0 on failure. */
static size_t match_end(Splitter *splitter, const uint8_t *run, size_t start, size_t end,
                        Error *error) {
    const Pattern *pattern = splitter->pattern;
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int found =
        pcre2_match(pattern->code, run, end, start, options, splitter->match, pattern->limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its stack on the heap */
        found = pcre2_match(pattern->code, run, end, start, options | PCRE2_NO_JIT, splitter->match,
                            pattern->limits);
    if (found == PCRE2_ERROR_NOMATCH) return end;
    if (found < 0) {
        PCRE2_UCHAR reason[128];
        pcre2_get_error_message(found, reason, sizeof reason);
        fail(error,
             "the split pattern '%.300s' failed at byte %zu of the text: %s; use a simpler "
             "one",
             pattern->text, splitter->position, (const char *)reason);
        return 0;
    }
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(splitter->match);
    if (span[0] > start) return span[0];       /* unmatched text up to the match */
    if (span[0] < start || span[1] <= start) { /* \K in a lookaround can do this */
        fail(error, "the split pattern '%.300s' matches text that it was not given; remove \\K",
             pattern->text);
        return 0;
    }
    return span[1];
}

/* The end of the piece that starts at the position, inside a run of valid UTF-8; 0 on failure. */
static size_t valid_end(Splitter *splitter, Error *error) {
    const NamedPattern *named = splitter->pattern->named;
    const uint8_t *run = splitter->text + splitter->run_start;
    size_t start = splitter->position - splitter->run_start;
    size_t end = splitter->run_end - splitter->run_start;
    if (end - start > SPLIT_WINDOW) {
        end = start + SPLIT_WINDOW;
        while ((run[end] & 0xC0) == 0x80) end--; /* not inside a character */
    }
    if (named) return (size_t)(named->word_end(run + start, run + end) - splitter->text);
    size_t found = match_end(splitter, run, start, end, error);
    return found ? splitter->run_start + found : 0;
}

SplitResult splitter_next(Splitter *splitter, const uint8_t **piece, size_t *size, Error *error) {
    size_t position = splitter->position;
    if (position == splitter->size) return SPLIT_END;
    if (position == splitter->run_end) {
        splitter->run_start = position;
        splitter->run_end =
            position + utf8_valid_prefix(splitter->text + position, splitter->size - position);
    }
    size_t end = splitter->run_end == position ? invalid_end(splitter) : valid_end(splitter, error);
    if (!end) return SPLIT_FAILED;
    if (splitter->run_end == position) splitter->run_end = end;
    *piece = splitter->text + position;
    *size = end - position;
    splitter->position = end;
    return SPLIT_PIECE;
}
