#include "text/words.h"

#include <stdbool.h>
#include <stddef.h>

#include "text/unicode.h"

/* Sets of classes. */
enum {
    LETTERS = 1 << CLASS_UPPER | 1 << CLASS_LOWER | 1 << CLASS_LETTER,
    NUMBERS = 1 << CLASS_NUMBER,
    SPACES = 1 << CLASS_SPACE,
    SYMBOLS = 1 << CLASS_OTHER | 1 << CLASS_MARK,
    CASELESS = 1 << CLASS_LETTER | 1 << CLASS_MARK, /* may stand in both halves of an o200k word */
    UPPER_HALF = 1 << CLASS_UPPER | CASELESS,
    LOWER_HALF = 1 << CLASS_LOWER | CASELESS,
};

typedef struct Character {
    unsigned class;
    size_t size; /* in bytes */
} Character;

static inline Character character_at(const uint8_t *at) {
    uint32_t lead = at[0];
    if (lead < 0x80) return (Character){unicode_classes[lead], 1};
    uint32_t code = at[1] & 0x3Fu;
    if (lead < 0xE0) return (Character){unicode_classes[(lead & 0x1F) << 6 | code], 2};
    code = code << 6 | (at[2] & 0x3Fu);
    if (lead < 0xF0) return (Character){unicode_classes[(lead & 0x0F) << 12 | code], 3};
    code = code << 6 | (at[3] & 0x3Fu);
    return (Character){unicode_classes[(lead & 0x07) << 18 | code], 4};
}

static inline bool is_in(unsigned class, unsigned set) {
    return set >> class & 1;
}

static inline bool begins_with(const uint8_t *at, const uint8_t *end, unsigned set) {
    return at < end && is_in(character_at(at).class, set);
}

static inline bool is_newline(uint8_t byte) {
    return byte == '\n' || byte == '\r';
}

/* The end of a run of characters of the set. */
static inline const uint8_t *run_end(const uint8_t *at, const uint8_t *end, unsigned set) {
    while (at < end) {
        Character character = character_at(at);
        if (!is_in(character.class, set)) break;
        at += character.size;
    }
    return at;
}

/* 's|'t|'re|'ve|'m|'ll|'d after the apostrophe, with `fold` 32 in upper case too: the end, or NULL. */
static const uint8_t *contraction_end(const uint8_t *at, const uint8_t *end, uint8_t fold) {
    if (at == end) return NULL;
    uint8_t first = at[0] | fold, second = at + 1 < end ? at[1] | fold : 0;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 1;
    if ((first == 'l' && second == 'l') || ((first == 'r' || first == 'v') && second == 'e'))
        return at + 2;
    bool long_s = fold && at + 1 < end && at[0] == 0xC5 && at[1] == 0xBF; /* U+017F folds to s */
    return long_s ? at + 2 : NULL;
}

/* \s+(?!\S)|\s+ of the white space at[..run): a space before a word is left to the word. */
static const uint8_t *space_end(const uint8_t *at, const uint8_t *run, const uint8_t *end) {
    if (run == end) return run;
    const uint8_t *last = run - 1;
    while ((*last & 0xC0) == 0x80) last--;
    return last > at ? last : run;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static const uint8_t *line_space_end(const uint8_t *at, const uint8_t *end) {
    const uint8_t *run = run_end(at, end, SPACES);
    for (const uint8_t *newline = run; newline > at; newline--)
        if (is_newline(newline[-1])) return newline;
    return space_end(at, run, end);
}

const uint8_t *word_end_gpt2(const uint8_t *at, const uint8_t *end) {
    const uint8_t *contraction = *at == '\'' ? contraction_end(at + 1, end, 0) : NULL;
    if (contraction) return contraction;
    const uint8_t *word = at + (*at == ' ');
    static const unsigned kinds[] = {LETTERS, NUMBERS, SYMBOLS};
    for (int i = 0; i < 3; i++)
        if (begins_with(word, end, kinds[i])) return run_end(word, end, kinds[i]);
    return space_end(at, run_end(at, end, SPACES), end);
}

/* \p{N}{1,most} */
static const uint8_t *number_end(const uint8_t *at, const uint8_t *end, int most) {
    for (; most && begins_with(at, end, NUMBERS); most--) at += character_at(at).size;
    return at;
}

/* " ?[^\s\p{L}\p{N}]+[\r\n]*", or NULL; with `slash`, [\r\n/]* at its end. */
static const uint8_t *symbols_end(const uint8_t *at, const uint8_t *end, bool slash) {
    at += *at == ' ';
    if (!begins_with(at, end, SYMBOLS)) return NULL;
    at = run_end(at, end, SYMBOLS);
    while (at < end && (is_newline(*at) || (slash && *at == '/'))) at++;
    return at;
}

/* Where a word's letters begin: after one character that is neither a newline nor in `kept`, if any. */
static inline const uint8_t *after_prefix(const uint8_t *at, unsigned kept) {
    Character first = character_at(at);
    bool prefix = !is_in(first.class, kept) && !is_newline(*at);
    return at + (prefix ? first.size : 0);
}

/* gpt4 and its variants: they differ in how many digits stand together and in white space at the end of
 * the text. */
static inline const uint8_t *gpt4_end(const uint8_t *at, const uint8_t *end, int digits,
                                      bool whole_space) {
    const uint8_t *found = *at == '\'' ? contraction_end(at + 1, end, 32) : NULL;
    if (found) return found;
    const uint8_t *letters = after_prefix(at, LETTERS | NUMBERS);
    if (begins_with(letters, end, LETTERS)) return run_end(letters, end, LETTERS);
    if (begins_with(at, end, NUMBERS)) return number_end(at, end, digits);
    if ((found = symbols_end(at, end, false))) return found;
    if (whole_space && run_end(at, end, SPACES) == end) return end; /* \s++$ */
    return line_space_end(at, end);
}

const uint8_t *word_end_gpt4(const uint8_t *at, const uint8_t *end) {
    return gpt4_end(at, end, 3, false);
}

const uint8_t *word_end_cl100k(const uint8_t *at, const uint8_t *end) {
    return gpt4_end(at, end, 3, true);
}

const uint8_t *word_end_nanochat(const uint8_t *at, const uint8_t *end) {
    return gpt4_end(at, end, 2, false);
}

/* The letters of an o200k word, or NULL: [upper]*[lower]+ or else [upper]+[lower]*, where letters without
 * case and marks are in both sets. If nothing lower follows the run of upper ones, the first form gives
 * back characters until it ends with one that is in both. */
static const uint8_t *cased_end(const uint8_t *at, const uint8_t *end) {
    const uint8_t *upper = at, *both = NULL;
    while (upper < end) {
        Character character = character_at(upper);
        if (!is_in(character.class, UPPER_HALF)) break;
        upper += character.size;
        if (is_in(character.class, CASELESS)) both = upper;
    }
    const uint8_t *lower = run_end(upper, end, LOWER_HALF);
    if (lower > upper) return lower;
    if (both) return both;
    return upper > at ? upper : NULL;
}

const uint8_t *word_end_o200k(const uint8_t *at, const uint8_t *end) {
    /* A mark can be prefix or letter: the piece is the same. */
    const uint8_t *letters = after_prefix(at, LETTERS | NUMBERS | 1 << CLASS_MARK);
    const uint8_t *found = cased_end(letters, end);
    if (found) {
        const uint8_t *contraction =
            found < end && *found == '\'' ? contraction_end(found + 1, end, 32) : NULL;
        return contraction ? contraction : found;
    }
    if (begins_with(at, end, NUMBERS)) return number_end(at, end, 3);
    if ((found = symbols_end(at, end, true))) return found;
    return line_space_end(at, end);
}
