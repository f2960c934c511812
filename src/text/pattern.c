#include "text/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/unicode.h"

/* The published split patterns. gpt2: OpenAI's GPT-2 release; gpt4: cl100k_base as it was published and as
 * tokenizer.json files have it; cl100k: as tiktoken has it now, with white space at the end of the text in
 * one piece (but without a possessive {1,3}, which means nothing there and another thing to Oniguruma);
 * o200k: o200k_base; nanochat: as gpt4, with numbers of at most two digits. */
static const NamedPattern patterns[] = {
    {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     word_end_gpt2},
    {"gpt4",
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     word_end_gpt4},
    {"cl100k",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     word_end_cl100k},
    {"nanochat",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,2}"
     "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     word_end_nanochat},
    {"o200k",
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
     "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     word_end_o200k},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* A regular expression may be slow without end or deep without bound: these stop it. */
enum { MATCH_LIMIT = 10000000, HEAP_LIMIT_KIB = 64 << 10 };

const char *pattern_expression(const char *text) {
    for (int i = 0; i < PATTERNS; i++)
        if (!strcmp(text, patterns[i].name)) return patterns[i].expression;
    return text;
}

/* PCRE2's \s also takes U+180E, which has not been white space since Unicode 6.3: say it by
 * property. */
static bool translate(const char *text, Bytes *out, Error *error) {
    bool done = true;
    for (; done && *text; text++) {
        if (*text != '\\' || !text[1]) {
            done = bytes_append(out, text, 1, error);
            continue;
        }
        text++;
        if (*text == 's')
            done = bytes_append(out, "\\p{White_Space}", 15, error);
        else if (*text == 'S')
            done = bytes_append(out, "\\P{White_Space}", 15, error);
        else
            done = bytes_append(out, text - 1, 2, error);
    }
    return done;
}

static pcre2_code *compile(const char *text, Error *error) {
    Bytes translated = {0};
    pcre2_code *code = NULL;
    if (translate(text, &translated, error)) {
        int problem;
        PCRE2_SIZE offset;
        uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
        const uint8_t *data = translated.size ? translated.data : (const uint8_t *)"";
        code = pcre2_compile(data, translated.size, options, &problem, &offset, NULL);
        if (code) {
            pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it the interpreter runs */
        } else {
            PCRE2_UCHAR reason[128];
            pcre2_get_error_message(problem, reason, sizeof reason);
            fail(error,
                 "'%.300s' is neither the name of a split pattern (gpt2, gpt4, cl100k, nanochat, "
                 "o200k) nor a regular expression: %s",
                 text, (const char *)reason);
        }
    }
    bytes_free(&translated);
    return code;
}

static bool compile_expression(Pattern *pattern, Error *error) {
    if (!(pattern->code = compile(pattern->text, error))) return false;
    if (!(pattern->limits = pcre2_match_context_create(NULL)))
        return fail_memory(error, sizeof(void *));
    pcre2_set_match_limit(pattern->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(pattern->limits, HEAP_LIMIT_KIB);
    return true;
}

Pattern *pattern_compile(const char *text, Error *error) {
    Pattern *pattern = allocate(1, sizeof *pattern, error);
    if (!pattern) return NULL;
    text = pattern_expression(text);
    for (int i = 0; i < PATTERNS; i++)
        if (!strcmp(text, patterns[i].expression)) pattern->named = &patterns[i];
    pattern->text = copy_string(text, error);
    bool done = pattern->text != NULL;
    if (pattern->named)
        unicode_load();
    else
        done = done && compile_expression(pattern, error);
    if (done) return pattern;
    pattern_free(pattern);
    return NULL;
}

void pattern_free(Pattern *pattern) {
    if (!pattern) return;
    pcre2_match_context_free(pattern->limits);
    pcre2_code_free(pattern->code);
    free(pattern->text);
    free(pattern);
}

const char *pattern_text(const Pattern *pattern) {
    return pattern->text;
}

static bool is_letter_or_digit(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z');
}

/* In every named pattern a letter or digit ends its piece before a line feed, and no lookahead but
 * the one after white space crosses it. */
bool pattern_cuts(const Pattern *pattern, const uint8_t *text, size_t position) {
    return pattern->named && text[position] == '\n' && is_letter_or_digit(text[position - 1]);
}
