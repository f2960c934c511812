#include "eval/core_example.h"

#include <stdlib.h>
#include <string.h>

/* The prompts of one example, one behind the other. */
typedef struct Prompts {
    Tokens tokens;
    struct {
        size_t first, count;
        size_t scored; /* the first token whose loss counts */
    } * at;
    size_t count;
} Prompts;

static const uint32_t *prompt(const Prompts *prompts, size_t i) {
    return prompts->tokens.ids + prompts->at[i].first;
}

static bool encode(const CoreTokenizing *tokenizing, const Bytes *text, Tokens *out, Error *error) {
    if (!reserve(&out->ids, &out->capacity, out->count + 1, sizeof *out->ids, error)) return false;
    out->ids[out->count++] = tokenizing->separator;
    return tokenizer_encode(tokenizing->tokenizer, text->data, text->size, false, out, error);
}

static bool add_prompt(Prompts *prompts, const CoreTokenizing *tokenizing, const Bytes *text,
                       Error *error) {
    size_t first = prompts->tokens.count;
    if (!encode(tokenizing, text, &prompts->tokens, error)) return false;
    prompts->at[prompts->count].first = first;
    prompts->at[prompts->count++].count = prompts->tokens.count - first;
    return true;
}

static bool add_prompts(Prompts *prompts, const CoreQuestion *question,
                        const CoreTokenizing *tokenizing, Error *error) {
    size_t choices = question->items[question->index].choices;
    Bytes text = {0};
    bool done = (prompts->at = allocate(choices, sizeof *prompts->at, error)) != NULL;
    for (size_t i = 0; done && i < choices; i++)
        done =
            core_prompt(question, i, &text, error) && add_prompt(prompts, tokenizing, &text, error);
    bytes_free(&text);
    return done;
}

/* How many tokens all prompts begin with. */
static size_t common_prefix(const Prompts *prompts) {
    size_t common = prompts->at[0].count;
    for (size_t i = 1; i < prompts->count; i++) {
        size_t same = 0;
        while (same < common && same < prompts->at[i].count &&
               prompt(prompts, i)[same] == prompt(prompts, 0)[same])
            same++;
        common = same;
    }
    return common;
}

/* How many tokens all prompts end with. */
static size_t common_suffix(const Prompts *prompts) {
    size_t common = prompts->at[0].count;
    const uint32_t *end = prompt(prompts, 0) + common;
    for (size_t i = 1; i < prompts->count; i++) {
        size_t same = 0, count = prompts->at[i].count;
        const uint32_t *other = prompt(prompts, i) + count;
        while (same < common && same < count &&
               other[-1 - (ptrdiff_t)same] == end[-1 - (ptrdiff_t)same])
            same++;
        common = same;
    }
    return common;
}

/* Where the answer begins in language modeling: behind the tokens of the prompt without it. */
static bool find_answer(Prompts *prompts, const CoreQuestion *question,
                        const CoreTokenizing *tokenizing, Error *error) {
    Bytes text = {0};
    Tokens without = {0};
    bool done = core_prompt_unanswered(question, &text, error) &&
                encode(tokenizing, &text, &without, error);
    if (done && (without.count >= prompts->at[0].count ||
                 memcmp(without.ids, prompts->tokens.ids, without.count * sizeof *without.ids)))
        done = fail(error,
                    "the answer is empty, or the tokenizer joins it to what it is the answer to");
    prompts->at[0].scored = without.count;
    tokens_free(&without);
    bytes_free(&text);
    return done;
}

/* What is scored: choices behind what they share, contexts over the continuation that they share. */
static bool find_scored(Prompts *prompts, const CoreQuestion *question,
                        const CoreTokenizing *tokenizing, Error *error) {
    CoreType type = question->task->type;
    if (type == CORE_LANGUAGE_MODELING) return find_answer(prompts, question, tokenizing, error);
    size_t prefix = common_prefix(prompts), suffix = common_suffix(prompts);
    for (size_t i = 0; i < prompts->count; i++)
        prompts->at[i].scored =
            type == CORE_MULTIPLE_CHOICE ? prefix : prompts->at[i].count - suffix;
    return true;
}

/* Leaves out the beginning of prompts that are too long. A first token is never scored. */
static void crop(Prompts *prompts, size_t longest) {
    for (size_t i = 0; i < prompts->count; i++) {
        size_t count = prompts->at[i].count, left_out = count > longest ? count - longest : 0;
        size_t scored = prompts->at[i].scored;
        prompts->at[i].first += left_out;
        prompts->at[i].count -= left_out;
        prompts->at[i].scored = scored > left_out ? scored - left_out : 1;
    }
}

/* The last token before what is scored predicts, so it is not of the prefix. (What is left of prompts that
 * were too long may have no token in common.) */
static size_t shared_tokens(const Prompts *prompts) {
    size_t shared = common_prefix(prompts);
    for (size_t i = 0; i < prompts->count; i++)
        if (prompts->at[i].scored < shared) shared = prompts->at[i].scored;
    return shared ? shared - 1 : 0;
}

static bool split(CoreExample *example, const Prompts *prompts, Error *error) {
    size_t prefix = shared_tokens(prompts), total = prefix;
    for (size_t i = 0; i < prompts->count; i++) total += prompts->at[i].count - prefix;
    example->tokens = allocate(total, sizeof *example->tokens, error);
    example->branches = allocate(prompts->count, sizeof *example->branches, error);
    if (!example->tokens || !example->branches) return false;
    memcpy(example->tokens, prompt(prompts, 0), prefix * sizeof *example->tokens);
    size_t first = prefix;
    for (size_t i = 0; i < prompts->count; i++) {
        size_t count = prompts->at[i].count - prefix;
        memcpy(example->tokens + first, prompt(prompts, i) + prefix,
               count * sizeof *example->tokens);
        example->branches[i] = (CoreBranch){first, count, prompts->at[i].scored - prefix};
        first += count;
    }
    example->prefix = prefix;
    example->branch_count = prompts->count;
    return true;
}

bool core_example_make(CoreExample *example, const CoreQuestion *question,
                       const CoreTokenizing *tokenizing, Error *error) {
    const CoreItem *item = &question->items[question->index];
    Prompts prompts = {0};
    *example = (CoreExample){.gold = item->gold, .line = item->line};
    bool done = add_prompts(&prompts, question, tokenizing, error) &&
                find_scored(&prompts, question, tokenizing, error);
    if (done) {
        crop(&prompts, tokenizing->longest);
        done = split(example, &prompts, error);
    }
    tokens_free(&prompts.tokens);
    free(prompts.at);
    if (!done) core_example_free(example);
    return done;
}

void core_example_free(CoreExample *example) {
    free(example->tokens);
    free(example->branches);
    *example = (CoreExample){0};
}

size_t core_example_longest(const CoreExample *example) {
    size_t longest = 0;
    for (size_t i = 0; i < example->branch_count; i++)
        if (example->branches[i].count > longest) longest = example->branches[i].count;
    return example->prefix + longest;
}

size_t core_example_tokens(const CoreExample *example) {
    size_t tokens = example->prefix;
    for (size_t i = 0; i < example->branch_count; i++) tokens += example->branches[i].count;
    return tokens;
}
