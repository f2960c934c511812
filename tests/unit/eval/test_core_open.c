/* A bundle in tokens: prompts come out whole, what is scored is where nanochat has it, and what is wrong is
 * said with its place. */
#include "eval/core.h"
#include "eval/core_sampling.h"
#include "make_model.h"

#include <unistd.h>

static Tokenizer *tokenizer;

static int open_tokenizer(void **state) {
    (void)state;
    Error error;
    const char *directory = test_path("tokenizer");
    assert_done(directory_create(directory, &error), error);
    save_tokenizer(directory);
    tokenizer = tokenizer_open(directory, &error);
    assert_done(tokenizer != NULL, error);
    return 0;
}

static int close_tokenizer(void **state) {
    (void)state;
    tokenizer_free(tokenizer);
    return 0;
}

static CoreItems read_items(CoreType type, const char *lines) {
    Error error;
    CoreItems items;
    assert_done(core_items_read(&items, type, "x.jsonl", lines, strlen(lines), &error), error);
    return items;
}

static CoreTokenizing tokenizing(size_t longest) {
    return (CoreTokenizing){tokenizer, (uint32_t)tokenizer_document_separator(tokenizer), longest};
}

static Tokens encode(const char *text) {
    Error error;
    Tokens tokens = {0};
    tokens.ids = malloc(sizeof *tokens.ids);
    tokens.ids[tokens.count++] = (uint32_t)tokenizer_document_separator(tokenizer);
    tokens.capacity = 1;
    assert_done(tokenizer_encode(tokenizer, text, strlen(text), false, &tokens, &error), error);
    return tokens;
}

/* The example of items that are asked without shots. */
static CoreExample make_example(const CoreItems *items, CoreType type, size_t longest) {
    Error error;
    CoreExample example;
    const CoreTask task = {.type = type, .delimiter = " "};
    const CoreTokenizing settings = tokenizing(longest);
    assert_done(core_example_make(&example, &(CoreQuestion){&task, items->items, 0, NULL},
                                  &settings, &error),
                error);
    return example;
}

/* Prefix and branch are the last tokens of `text`, at most `longest`, scored from token `scored` of it. */
static void check_branch(const CoreExample *example, size_t index, const char *text, size_t scored,
                         size_t longest) {
    Tokens tokens = encode(text);
    const CoreBranch *branch = &example->branches[index];
    size_t count = example->prefix + branch->count;
    size_t left_out = tokens.count > longest ? tokens.count - longest : 0;
    assert_int_equal(count, tokens.count - left_out);
    assert_memory_equal(example->tokens, tokens.ids + left_out,
                        example->prefix * sizeof *tokens.ids);
    assert_memory_equal(example->tokens + branch->first, tokens.ids + left_out + example->prefix,
                        branch->count * sizeof *tokens.ids);
    assert_int_equal(example->prefix + branch->scored, scored > left_out ? scored - left_out : 1);
    tokens_free(&tokens);
}

static size_t common_prefix(const char *a, const char *b) {
    Tokens left = encode(a), right = encode(b);
    size_t same = 0;
    while (same < left.count && same < right.count && left.ids[same] == right.ids[same]) same++;
    tokens_free(&left);
    tokens_free(&right);
    return same;
}

static size_t token_count(const char *text) {
    Tokens tokens = encode(text);
    size_t count = tokens.count;
    tokens_free(&tokens);
    return count;
}

static void choices_are_scored_behind_what_they_share(void **state) {
    (void)state;
    static const char first[] = "The sea is a river", second[] = "The sea is a rain";
    CoreItems items = read_items(CORE_MULTIPLE_CHOICE, "{\"query\": \"The sea is\", \"choices\": "
                                                       "[\"a river\", \"a rain\"], \"gold\": 1}");
    size_t common = common_prefix(first, second);
    const size_t longest[] = {1000, token_count(first), token_count(first) - 1, 5, 3, 2, 1};
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        CoreExample example = make_example(&items, CORE_MULTIPLE_CHOICE, longest[i]);
        assert_int_equal(example.branch_count, 2);
        assert_int_equal(example.gold, 1);
        check_branch(&example, 0, first, common, longest[i]);
        check_branch(&example, 1, second, common, longest[i]);
        if (!i) assert_int_equal(example.prefix, common - 1);
        core_example_free(&example);
    }
    core_items_free(&items);
}

static void contexts_are_scored_over_the_continuation(void **state) {
    (void)state;
    static const char *const texts[] = {"The river rises. the sea takes no notice",
                                        "The sun, said the sea. the sea takes no notice"};
    CoreItems items = read_items(CORE_SCHEMA, "{\"context_options\": [\"The river rises.\", "
                                              "\"The sun, said the sea.\"], \"continuation\": "
                                              "\"the sea takes no notice\", \"gold\": 0}");
    CoreExample example = make_example(&items, CORE_SCHEMA, 1000);
    size_t continuation = token_count(" the sea takes no notice") - 1; /* without the separator */
    for (size_t i = 0; i < 2; i++) {
        size_t from = token_count(texts[i]) - continuation - 1; /* the full stop is shared too */
        check_branch(&example, i, texts[i], from, 1000);
    }
    assert_int_equal(example.prefix, common_prefix(texts[0], texts[1]) - 1);
    core_example_free(&example);
    core_items_free(&items);
}

static void equal_choices_have_nothing_to_score(void **state) {
    (void)state;
    static const struct {
        CoreType type;
        const char *line;
    } cases[] = {
        {CORE_MULTIPLE_CHOICE,
         "{\"query\": \"The\", \"choices\": [\"sea\", \"sea\"], \"gold\": 0}"},
        {CORE_MULTIPLE_CHOICE, "{\"query\": \"The\", \"choices\": [\"sea\"], \"gold\": 0}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CoreItems items = read_items(cases[i].type, cases[i].line);
        CoreExample example = make_example(&items, cases[i].type, 1000);
        for (size_t j = 0; j < example.branch_count; j++) {
            assert_int_equal(example.branches[j].count, 1);
            assert_int_equal(example.branches[j].scored, 1);
        }
        core_example_free(&example);
        core_items_free(&items);
    }
}

static void answers_continue_the_stripped_prompt(void **state) {
    (void)state;
    static const char text[] = "the sea is the sum";
    CoreItems items =
        read_items(CORE_LANGUAGE_MODELING,
                   "{\"context\": \"\\u3000the sea is \", \"continuation\": \"the sum\"}\n"
                   "{\"context\": \"the sea\", \"continuation\": \"\"}");
    CoreExample example = make_example(&items, CORE_LANGUAGE_MODELING, 1000);
    assert_int_equal(example.branch_count, 1);
    assert_int_equal(example.prefix, token_count("the sea is") - 1);
    check_branch(&example, 0, text, token_count("the sea is"), 1000);
    core_example_free(&example);

    Error error;
    const CoreTokenizing settings = tokenizing(1000);
    const CoreTask spaced = {.type = CORE_LANGUAGE_MODELING, .delimiter = " "},
                   joined = {.type = CORE_LANGUAGE_MODELING, .delimiter = ""};
    assert_fails_with(core_example_make(&example, &(CoreQuestion){&joined, items.items, 1, NULL},
                                        &settings, &error),
                      error, "the answer is empty, or the tokenizer joins it");
    assert_done(core_example_make(&example, &(CoreQuestion){&spaced, items.items, 1, NULL},
                                  &settings, &error),
                error); /* the space alone is an answer */
    core_example_free(&example);
    core_items_free(&items);
}

/* A bundle with 30 questions of one task, and another task that has no data. */
static const char *write_bundle(const char *name, const char *shots) {
    Error error;
    Bytes lines = {0}, yaml = {0};
    const char *directory = test_path(name);
    char path[512];
    snprintf(path, sizeof path, "%s/eval_data/made", directory);
    assert_done(directory_create(path, &error), error);
    for (int i = 0; i < 30; i++)
        assert_done(bytes_format(&lines, &error,
                                 "{\"context\": \"the river %d is \", \"continuation\": \"%s\"}\n",
                                 i, i % 3 ? "the sea" : "the rain, when the sun comes again"),
                    error);
    assert_done(bytes_format(&yaml, &error,
                             "icl_tasks:\n"
                             "- {label: gone, dataset_uri: made/gone.jsonl, num_fewshot: [0], "
                             "icl_task_type: schema}\n"
                             "- {label: rivers, dataset_uri: made/rivers.jsonl, num_fewshot: [%s], "
                             "icl_task_type: language_modeling}\n",
                             shots),
                error);
    snprintf(path, sizeof path, "%s/eval_data/made/rivers.jsonl", directory);
    assert_done(file_write(path, lines.data, lines.size, &error), error);
    snprintf(path, sizeof path, "%s/core.yaml", directory);
    assert_done(file_write(path, yaml.data, yaml.size, &error), error);
    static const char csv[] = "Eval Task,Random baseline\ngone,50\nrivers,20\n";
    snprintf(path, sizeof path, "%s/eval_meta_data.csv", directory);
    assert_done(file_write(path, csv, sizeof csv - 1, &error), error);
    bytes_free(&lines);
    bytes_free(&yaml);
    return directory;
}

static void bundles_are_opened(void **state) {
    (void)state;
    Error error;
    Core core;
    const char *directory = write_bundle("whole", "3");
    assert_done(
        core_open(&core, directory, tokenizer, &(CoreSettings){.sequence_length = 100}, &error),
        error);
    assert_int_equal(core.count, 2);
    assert_int_equal(core.present, 1);
    assert_int_equal(core.sets[0].count, 0);
    assert_int_equal(core.sets[1].count, 30);
    assert_true(core.sets[1].task.baseline == 20);
    size_t order[30], longest = 0;
    core_shuffle(order, 30);
    for (size_t i = 0; i < 30; i++) {
        const CoreExample *example = &core.sets[1].examples[i];
        assert_int_equal(example->line, order[i] + 1);
        if (core_example_longest(example) > longest) longest = core_example_longest(example);
    }
    assert_int_equal(core.longest, longest);
    CoreSizes sizes = core_sizes(&core);
    assert_true(sizes.context >= (int64_t)longest && sizes.context % sizes.prefill == 0);
    core_close(&core);

    const CoreSettings few = {.examples = 4, .sequence_length = 2};
    assert_done(core_open(&core, directory, tokenizer, &few, &error), error);
    assert_int_equal(core.sets[1].count, 4);
    assert_int_equal(core.sets[1].examples[3].line, order[3] + 1);
    assert_int_equal(core.longest, 20);
    core_close(&core);
}

static void broken_bundles_are_refused(void **state) {
    (void)state;
    Error error;
    Core core;
    const CoreSettings all = {.sequence_length = 100},
                       three = {.examples = 3, .sequence_length = 100};
    const char *directory = write_bundle("broken", "3");
    assert_fails_with(
        core_open(&core, directory, tokenizer, &three, &error), error,
        "rivers.jsonl: 3 examples before each question need more than the 3 there are");
    char path[512];
    snprintf(path, sizeof path, "%s/eval_data/made/rivers.jsonl", directory);
    static const char lines[] =
        "{\"context\": \"a\", \"continuation\": \"b\"}\n{\"context\": \"a\"}\n";
    assert_done(file_write(path, lines, sizeof lines - 1, &error), error);
    assert_fails_with(core_open(&core, directory, tokenizer, &all, &error), error,
                      "rivers.jsonl:2: \"continuation\" is missing");
    assert_int_equal(unlink(path), 0);
    assert_fails_with(core_open(&core, directory, tokenizer, &all, &error), error,
                      "the data of none of the 2 tasks");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_scored_behind_what_they_share),
        cmocka_unit_test(contexts_are_scored_over_the_continuation),
        cmocka_unit_test(equal_choices_have_nothing_to_score),
        cmocka_unit_test(answers_continue_the_stripped_prompt),
        cmocka_unit_test(bundles_are_opened),
        cmocka_unit_test(broken_bundles_are_refused),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
