/* The named patterns as code: equal to the regular expressions, as PCRE2 and as the peers run them. */
#include "text_support.h"

#include "base/random.h"
#include "text/pattern.h"
#include "text/unicode.h"

static const char *const names[] = {"gpt2", "gpt4", "cl100k", "nanochat", "o200k"};
enum { NAMES = 5, CHARACTERS = 200000 };

static const char usual[] = " \t\r\n'sdtlmrveSLE.,!/0123456789aB";

static void append_character(Bytes *text, uint32_t code) {
    Error error;
    uint8_t bytes[4] = {(uint8_t)code};
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size; size > 1 && i-- > 0; code >>= 6)
        bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
    if (size > 1) bytes[0] = (uint8_t)(leads[size] | (bytes[0] & (0x7F >> size)));
    assert_done(bytes_append(text, bytes, size, &error), error);
}

/* Usual characters, those of Latin, of all old scripts, and of all planes: as make_splits.py makes it. */
static Bytes random_text(void) {
    static const uint32_t planes[] = {0x250, 0x3000, 0x10000, 0x20000, 0x110000};
    Bytes text = {0};
    uint32_t state = 1;
    for (int i = 0; i < CHARACTERS; i++) {
        state = state * 1664525 + 1013904223;
        uint32_t kind = state >> 29, value = state >> 4;
        uint32_t code =
            kind < 3 ? (uint8_t)usual[value % (sizeof usual - 1)] : value % planes[kind - 3];
        append_character(&text, code >= 0xD800 && code < 0xE000 ? 0xE9 : code);
    }
    for (const char *end = "e\n  "; *end; end++) append_character(&text, (uint8_t)*end);
    return text;
}

/* The ends of the pieces. */
static Tokens split(const char *expression, const Bytes *text) {
    Error error;
    Tokens ends = {0};
    Splitter splitter;
    Pattern *pattern = pattern_compile(expression, &error);
    assert_done(pattern != NULL, error);
    assert_done(splitter_start(&splitter, pattern, &error), error);
    splitter_set_text(&splitter, text->data, text->size);
    const uint8_t *piece;
    size_t size;
    SplitResult result;
    while ((result = splitter_next(&splitter, &piece, &size, &error)) == SPLIT_PIECE) {
        assert_done(reserve(&ends.ids, &ends.capacity, ends.count + 1, sizeof *ends.ids, &error),
                    error);
        ends.ids[ends.count++] = (uint32_t)(piece + size - text->data);
    }
    assert_done(result == SPLIT_END, error);
    splitter_stop(&splitter);
    pattern_free(pattern);
    return ends;
}

static void assert_golden(const char *kind, const char *name, size_t count, const void *data,
                          size_t size) {
    FILE *file = fopen(HEARTH_SOURCE "/tests/golden/tokenizer/splits.txt", "r");
    assert_non_null(file);
    char found_kind[32], found_name[32], wanted[SHA256_TEXT], sha256[SHA256_TEXT];
    size_t wanted_count;
    bool found = false;
    sha256_bytes(data, size, sha256);
    while (fscanf(file, "%31s %31s %zu %64s", found_kind, found_name, &wanted_count, wanted) == 4) {
        if (strcmp(kind, found_kind) || strcmp(name, found_name)) continue;
        found = true;
        if (count != wanted_count || strcmp(sha256, wanted))
            fail_msg("%s of %s: %zu, not %zu as the peer has, or others", kind, name, count,
                     wanted_count);
    }
    fclose(file);
    assert_true(found);
}

static void classes_equal_the_peers(void **state) {
    (void)state;
    unicode_load();
    assert_golden("classes", "unicode-16", UNICODE_POINTS, unicode_classes, UNICODE_POINTS);
}

static void pieces_equal_the_peers(void **state) {
    (void)state;
    Bytes text = random_text();
    for (int i = 0; i < NAMES; i++) {
        Tokens ends = split(names[i], &text);
        assert_golden("pieces", names[i], ends.count, ends.ids, 4 * ends.count);
        tokens_free(&ends);
    }
    bytes_free(&text);
}

static void ids_equal_the_peers(void **state) {
    (void)state;
    static const char *const encodings[] = {"r50k_base", "cl100k_base"};
    Bytes text = random_text();
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "tokenizer/tiktoken/%s.tiktoken", encodings[i]);
        Tokenizer *tokenizer = open_shared(name);
        if (!tokenizer) skip();
        Tokens tokens = encode(tokenizer, text.data, text.size, false);
        assert_golden("ids", encodings[i], tokens.count, tokens.ids, 4 * tokens.count);
        tokens_free(&tokens);
        tokenizer_free(tokenizer);
    }
    bytes_free(&text);
}

/* Whether PCRE2's tables, which may be older or newer, have the character in the same class. */
static bool pcre2_agrees(pcre2_code *const *classes, pcre2_match_data *match, uint32_t code) {
    Bytes one = {0};
    append_character(&one, code);
    int found = 0;
    for (int c = 1; c <= CLASS_SPACE; c++)
        if (pcre2_match(classes[c], one.data, one.size, 0, 0, match, NULL) > 0) found = c;
    bytes_free(&one);
    return found == unicode_classes[code];
}

/* All characters on which the tables agree, which is nearly all. */
static Tokens agreed_characters(void) {
    static const char *const properties[] = {
        "",       "[\\p{Lu}\\p{Lt}]", "\\p{Ll}",         "[\\p{Lm}\\p{Lo}]",
        "\\p{M}", "\\p{N}",           "\\p{White_Space}"};
    pcre2_code *classes[CLASS_SPACE + 1] = {NULL};
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    Tokens agreed = {0};
    Error error;
    for (int c = 1; c <= CLASS_SPACE; c++) {
        int problem;
        PCRE2_SIZE offset;
        classes[c] = pcre2_compile((PCRE2_SPTR)properties[c], PCRE2_ZERO_TERMINATED, PCRE2_UTF,
                                   &problem, &offset, NULL);
        assert_non_null(classes[c]);
    }
    unicode_load();
    for (uint32_t code = 0; code < 0x20000; code++) {
        if ((code >= 0xD800 && code < 0xE000) || !pcre2_agrees(classes, match, code)) continue;
        assert_done(reserve(&agreed.ids, &agreed.capacity, agreed.count + 1, 4, &error), error);
        agreed.ids[agreed.count++] = code;
    }
    assert_true(agreed.count > 115000);
    for (int c = 1; c <= CLASS_SPACE; c++) pcre2_code_free(classes[c]);
    pcre2_match_data_free(match);
    return agreed;
}

/* Many short texts, of few kinds of character each: every alternative of the expressions meets every other,
 * and the end of the text. A group around an expression hides that it is a named one. */
static void pieces_equal_pcre2(void **state) {
    (void)state;
    Tokens agreed = agreed_characters();
    for (int n = 0; n < NAMES; n++) {
        char hidden[1024];
        snprintf(hidden, sizeof hidden, "(?:%s)", pattern_expression(names[n]));
        for (uint32_t round = 0; round < 400; round++) {
            Bytes text = {0};
            uint64_t usually = random_below(round, 0, 0, 101);
            uint64_t length = 1 + random_below(round, 0, 1, 400);
            for (uint32_t i = 0; i < length; i++) {
                bool is_usual = random_below(round, 1, i, 100) < usually;
                uint64_t most = is_usual ? sizeof usual - 1 : agreed.count;
                uint64_t which = random_below(round, 2, i, most);
                append_character(&text, is_usual ? (uint8_t)usual[which] : agreed.ids[which]);
            }
            Tokens ours = split(names[n], &text), theirs = split(hidden, &text);
            if (ours.count != theirs.count || memcmp(ours.ids, theirs.ids, 4 * ours.count))
                fail_msg("%s, round %u: '%.*s'", names[n], round, (int)text.size,
                         (const char *)text.data);
            tokens_free(&ours);
            tokens_free(&theirs);
            bytes_free(&text);
        }
    }
    tokens_free(&agreed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_equal_the_peers),
        cmocka_unit_test(pieces_equal_the_peers),
        cmocka_unit_test(ids_equal_the_peers),
        cmocka_unit_test(pieces_equal_pcre2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
