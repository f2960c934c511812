/* Training: equal to the definition and to a published result; chunks, threads and order of texts
 * do not matter. */
#include "text_support.h"

#include "base/random.h"
#include "base/threads.h"
#include "text/splitter.h"

/* --- the definition, counting anew for every merge --- */

enum { SYMBOLS_MOST = 1 << 18, TOKENS_HERE = 800 };

typedef struct Reference {
    uint32_t symbols[SYMBOLS_MOST]; /* UINT32_MAX ends a word */
    size_t count;
    uint8_t *tokens[TOKENS_HERE];
    size_t sizes[TOKENS_HERE];
    uint32_t vocab_size;
    bool greatest; /* ties go to the greatest pair of byte strings, not to the smallest ids */
} Reference;

static int compare_tokens(const Reference *reference, uint32_t a, uint32_t b) {
    size_t left = reference->sizes[a], right = reference->sizes[b];
    int order = memcmp(reference->tokens[a], reference->tokens[b], left < right ? left : right);
    return order ? order : (left > right) - (left < right);
}

static bool wins_tie(const Reference *reference, uint64_t a, uint64_t b) {
    if (!reference->greatest) return a < b;
    int order = compare_tokens(reference, (uint32_t)(a >> 32), (uint32_t)(b >> 32));
    if (!order) order = compare_tokens(reference, (uint32_t)a, (uint32_t)b);
    return order > 0;
}

static uint64_t most_frequent(const Reference *reference) {
    static uint32_t counts[TOKENS_HERE * TOKENS_HERE];
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i + 1 < reference->count; i++) {
        uint32_t left = reference->symbols[i], right = reference->symbols[i + 1];
        if (left != UINT32_MAX && right != UINT32_MAX) counts[left * TOKENS_HERE + right]++;
    }
    uint64_t best = UINT64_MAX;
    uint32_t most = 0;
    for (uint32_t i = 0; i < TOKENS_HERE * TOKENS_HERE; i++) {
        if (!counts[i] || counts[i] < most) continue;
        uint64_t pair = (uint64_t)(i / TOKENS_HERE) << 32 | i % TOKENS_HERE;
        if (counts[i] > most || wins_tie(reference, pair, best)) best = pair;
        most = counts[i];
    }
    return best;
}

static void reference_start(Reference *reference, const uint8_t *text, size_t size,
                            const char *pattern) {
    Error error;
    Splitter splitter;
    const uint8_t *piece;
    size_t piece_size;
    Pattern *compiled = pattern_compile(pattern, &error);
    assert_done(compiled && splitter_start(&splitter, compiled, &error), error);
    splitter_set_text(&splitter, text, size);
    while (splitter_next(&splitter, &piece, &piece_size, &error) == SPLIT_PIECE) {
        for (size_t i = 0; i < piece_size; i++) reference->symbols[reference->count++] = piece[i];
        reference->symbols[reference->count++] = UINT32_MAX;
    }
    splitter_stop(&splitter);
    pattern_free(compiled);
    for (; reference->vocab_size < 256; reference->vocab_size++) {
        reference->tokens[reference->vocab_size] = malloc(1);
        reference->tokens[reference->vocab_size][0] = (uint8_t)reference->vocab_size;
        reference->sizes[reference->vocab_size] = 1;
    }
}

static bool reference_merge(Reference *reference) {
    uint64_t best = most_frequent(reference);
    if (best == UINT64_MAX) return false;
    uint32_t left = (uint32_t)(best >> 32), right = (uint32_t)best, made = reference->vocab_size++;
    reference->sizes[made] = reference->sizes[left] + reference->sizes[right];
    reference->tokens[made] = malloc(reference->sizes[made]);
    memcpy(reference->tokens[made], reference->tokens[left], reference->sizes[left]);
    memcpy(reference->tokens[made] + reference->sizes[left], reference->tokens[right],
           reference->sizes[right]);
    size_t kept = 0;
    for (size_t i = 0; i < reference->count; i++) {
        bool joins = i + 1 < reference->count && reference->symbols[i] == left &&
                     reference->symbols[i + 1] == right;
        reference->symbols[kept++] = joins ? made : reference->symbols[i];
        i += joins;
    }
    reference->count = kept;
    return true;
}

static void reference_free(Reference *reference) {
    for (uint32_t i = 0; i < reference->vocab_size; i++) free(reference->tokens[i]);
    free(reference);
}

static void assert_equals_reference(const uint8_t *text, size_t size, const char *pattern,
                                    uint32_t merges) {
    Reference *reference = calloc(1, sizeof *reference);
    assert_non_null(reference);
    reference_start(reference, text, size, pattern);
    for (uint32_t i = 0; i < merges; i++) assert_true(reference_merge(reference));
    Tokenizer *tokenizer = train_on(text, size, pattern, 256 + merges + 1);
    for (uint32_t id = 0; id < 256 + merges; id++) {
        size_t token_size;
        const uint8_t *token = tokenizer_token(tokenizer, id, &token_size);
        assert_int_equal(token_size, reference->sizes[id]);
        assert_memory_equal(token, reference->tokens[id], token_size);
    }
    tokenizer_free(tokenizer);
    reference_free(reference);
}

static void equals_the_definition(void **state) {
    (void)state;
    enum { SIZE = 3000 };
    uint8_t text[SIZE];
    for (uint32_t round = 0; round < 20;
         round++) { /* few letters: many ties and overlaps ("aaaa") */
        for (uint32_t i = 0; i < SIZE; i++)
            text[i] = (uint8_t) "aab \n"[random_below(round, 1, i, round % 2 ? 5 : 3)];
        assert_equals_reference(text, SIZE, round % 3 ? "gpt4" : "gpt2", 30);
    }
}

static void equals_the_definition_on_english(void **state) {
    (void)state;
    const char *path = shared_data("tokenizer/bpe_train_oracle/corpus.en");
    if (!path) skip();
    Error error;
    Bytes text = {0};
    assert_done(file_read(path, 1 << 20, &text, &error), error);
    assert_equals_reference(text.data, text.size, "gpt2", 300);
    bytes_free(&text);
}

/* The published merges break ties towards the greatest byte strings: the definition with that rule
 * gives them, which proves the definition above. */
static void the_definition_equals_the_oracle(void **state) {
    (void)state;
    const char *path = shared_data("tokenizer/bpe_train_oracle/corpus.en");
    const char *oracle = shared_data("tokenizer/bpe_train_oracle/train-bpe-reference-merges.txt");
    if (!path || !oracle) skip();
    Error error;
    Bytes text = {0};
    assert_done(file_read(path, 1 << 20, &text, &error), error);
    Reference *reference = calloc(1, sizeof *reference);
    assert_non_null(reference);
    reference->greatest = true;
    reference_start(reference, text.data, text.size, "gpt2");
    FILE *file = fopen(oracle, "r");
    char left[128], right[128];
    int merges = 0;
    assert_non_null(file);
    while (fscanf(file, "%127s %127s", left, right) == 2) {
        assert_true(reference_merge(reference));
        char *token = calloc(1, reference->sizes[reference->vocab_size - 1] + 1), joined[256] = "";
        memcpy(token, reference->tokens[reference->vocab_size - 1],
               reference->sizes[reference->vocab_size - 1]);
        const char *parts[] = {left, right};
        for (int i = 0; i < 2; i++)
            for (const char *at = parts[i]; *at; at++) { /* the corpus is ASCII: only Ġ is moved */
                bool space = !strncmp(at, "\xC4\xA0", 2);
                joined[strlen(joined)] = space ? ' ' : *at;
                at += space;
            }
        assert_string_equal(token, joined);
        free(token);
        merges++;
    }
    assert_int_equal(merges, 243);
    fclose(file);
    reference_free(reference);
    bytes_free(&text);
}

/* --- what must not matter --- */

/* Text with letters, numbers, spaces, empty lines, invalid bytes and long words. */
static uint8_t *long_text(size_t size) {
    static const char *const words[] = {
        " the", "\n",  " cats",  "1234", "\n\n", "  ", "!\n", "don't", "\xC3\xA9t\xC3\xA9",
        "\xFF", " of", "word\n", "\t",   "."};
    uint8_t *text = malloc(size);
    assert_non_null(text);
    size_t at = 0;
    for (uint32_t i = 0; at < size; i++) {
        const char *word = words[random_below(3, 0, i, 14)];
        for (; *word && at < size; word++) text[at++] = (uint8_t)*word;
        if (random_below(4, 0, i, 40) == 0)
            for (uint64_t j = random_below(5, 0, i, 30); j-- && at < size;)
                text[at++] = (uint8_t)('a' + random_below(6, i, j, 26));
    }
    return text;
}

static Tokenizer *train_in_chunks(const uint8_t *text, size_t size, size_t chunk,
                                  const char *pattern, int threads) {
    Error error;
    thread_count_set(threads);
    Trainer *trainer = trainer_open(pattern, &error);
    assert_done(trainer != NULL, error);
    for (size_t at = 0; at < size; at += chunk)
        assert_done(trainer_add(trainer, text + at, size - at < chunk ? size - at : chunk, &error),
                    error);
    const char *const specials[] = {"<|endoftext|>"};
    Tokenizer *tokenizer = trainer_finish(trainer, 400, specials, 1, NULL, NULL, &error);
    assert_done(tokenizer != NULL, error);
    trainer_free(trainer);
    return tokenizer;
}

static void chunks_and_threads_do_not_matter(void **state) {
    (void)state;
    enum { SIZE = 18 << 20 };
    static const char *const patterns[] = {"gpt4", "nanochat", "\\s*\\S+\\s"};
    static const struct {
        size_t chunk;
        int threads;
    } ways[] = {{977, 1}, {1 << 20, 2}, {(3 << 20) + 1, 5}};
    uint8_t *text = long_text(SIZE);
    int threads = thread_count();
    for (int p = 0; p < 3; p++) {
        Tokenizer *first = train_in_chunks(text, SIZE, SIZE, patterns[p], 3);
        for (int w = 0; w < 3; w++) {
            Tokenizer *other =
                train_in_chunks(text, SIZE, ways[w].chunk, patterns[p], ways[w].threads);
            assert_same_tokenizer(first, other);
            tokenizer_free(other);
        }
        tokenizer_free(first);
    }
    thread_count_set(threads);
    free(text);
}

static void order_of_texts_does_not_matter(void **state) {
    (void)state;
    static const char *const texts[] = {"one two three", "two three", " three four ", "\n\nfive"};
    Error error;
    Tokenizer *tokenizers[2];
    for (int way = 0; way < 2; way++) {
        Trainer *trainer = trainer_open("gpt4", &error);
        assert_done(trainer != NULL, error);
        for (int i = 0; i < 4; i++) {
            const char *text = texts[way ? 3 - i : i];
            assert_done(trainer_add(trainer, text, strlen(text), &error) &&
                            trainer_end_text(trainer, &error),
                        error);
        }
        tokenizers[way] = trainer_finish(trainer, 266, NULL, 0, NULL, NULL, &error);
        assert_done(tokenizers[way] != NULL, error);
        trainer_free(trainer);
    }
    assert_same_tokenizer(tokenizers[0], tokenizers[1]);
    tokenizer_free(tokenizers[0]);
    tokenizer_free(tokenizers[1]);
}

/* --- limits --- */

enum { TEXTS = 4 };

/* Trains on texts up to a NULL, in chunks of a size, as long as the limits have room for more. */
static Tokenizer *train_within(TrainerLimits limits, const char *const *texts, size_t chunk) {
    Error error;
    Trainer *trainer = trainer_open("gpt4", &error);
    assert_done(trainer != NULL, error);
    trainer_limit(trainer, limits);
    int64_t bytes = 0;
    for (; *texts && !trainer_is_full(trainer); texts++) {
        size_t size = strlen(*texts);
        for (size_t at = 0; at < size; at += chunk)
            assert_done(
                trainer_add(trainer, *texts + at, size - at < chunk ? size - at : chunk, &error),
                error);
        assert_done(trainer_end_text(trainer, &error), error);
        assert_true(trainer_bytes(trainer) >= bytes);
        bytes = trainer_bytes(trainer);
    }
    Tokenizer *tokenizer = trainer_finish(trainer, 260, NULL, 0, NULL, NULL, &error);
    assert_done(tokenizer != NULL, error);
    trainer_free(trainer);
    return tokenizer;
}

static void limits_count_characters(void **state) {
    (void)state;
    static const char *const texts[] = {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5 long", "two two two",
                                        "abc", "zzzzzzzz zzzzzzzz", NULL};
    static const struct {
        TrainerLimits limits;
        const char *expected[TEXTS + 1];
    } cases[] = {
        {{5, INT64_MAX}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5", "two t", "abc", "zzzzz"}},
        {{3, INT64_MAX}, {"\xC3\xA9t\xC3\xA9", "two", "abc", "zzz"}},
        {{5, 9}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5", "two t"}},
        {{5, 10}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5", "two t", "abc"}}, /* not beyond 10 yet */
        {{INT64_MAX, 23}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5 long", "two two two", "abc"}},
        {{INT64_MAX, 9}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5 long"}},
        {{5, 5}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5", "two t"}},
        {{7, 5}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x94\xA5 l"}},
    };
    const TrainerLimits none = {INT64_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Tokenizer *expected = train_within(none, cases[i].expected, SIZE_MAX / 2);
        for (size_t chunk = 1; chunk < 20; chunk++) {
            Tokenizer *tokenizer = train_within(cases[i].limits, texts, chunk);
            assert_same_tokenizer(expected, tokenizer);
            tokenizer_free(tokenizer);
        }
        tokenizer_free(expected);
    }
    TrainerLimits usual = trainer_default_limits("nanochat");
    assert_int_equal(usual.text, 10000);
    assert_int_equal(usual.total, 2000000000);
    assert_true(trainer_default_limits("gpt4").text == INT64_MAX);
}

/* --- bad input --- */

static void too_little_text_says_how_much_is_possible(void **state) {
    (void)state;
    Error error;
    Trainer *trainer = trainer_open("gpt2", &error);
    assert_done(trainer != NULL, error);
    assert_done(trainer_add(trainer, "abab", 4, &error), error); /* ab, abab */
    assert_fails_with(trainer_finish(trainer, 300, NULL, 0, NULL, NULL, &error) != NULL, error,
                      "at most 258");
    trainer_free(trainer);
    trainer = trainer_open("gpt2", &error);
    assert_done(trainer != NULL, error);
    trainer_limit(trainer, (TrainerLimits){4, INT64_MAX});
    assert_done(trainer_add(trainer, "abab", 4, &error), error);
    assert_false(trainer_is_cropped(trainer));
    assert_done(trainer_add(trainer, "abab", 4, &error), error);
    assert_true(trainer_is_cropped(trainer));
    assert_fails_with(trainer_finish(trainer, 300, NULL, 0, NULL, NULL, &error) != NULL, error,
                      "--max-doc-chars");
    trainer_free(trainer);
    trainer = trainer_open("gpt2", &error);
    assert_fails_with(trainer_finish(trainer, 255, NULL, 0, NULL, NULL, &error) != NULL, error,
                      "255 is not possible");
    trainer_free(trainer);
    trainer = trainer_open("gpt2", &error);
    assert_fails_with(trainer_finish(trainer, 300, NULL, 0, NULL, NULL, &error) != NULL, error,
                      "at most 256"); /* no text at all */
    trainer_free(trainer);
    assert_fails_with(trainer_open("[", &error) != NULL, error, "'['");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_definition),
        cmocka_unit_test(equals_the_definition_on_english),
        cmocka_unit_test(the_definition_equals_the_oracle),
        cmocka_unit_test(chunks_and_threads_do_not_matter),
        cmocka_unit_test(order_of_texts_does_not_matter),
        cmocka_unit_test(limits_count_characters),
        cmocka_unit_test(too_little_text_says_how_much_is_possible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
