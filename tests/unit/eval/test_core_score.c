/* How examples go through the sections of a program, whatever the sizes: in the place of a model there is a
 * backend whose losses are a hash of all that a token sees. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "eval/core.h"

enum { CONTEXT = 96, PREFILL = 8, ROWS = 24, VOCAB = 3, EXAMPLES = 2000 };

/* The program's buffers. */
enum { NEW_TOKENS, PREVIOUS, INPUT, START, TARGETS, LOSSES, BEST, BUFFERS };

struct Executor {
    int32_t buffers[BUFFERS][ROWS];
    int32_t cache[CONTEXT]; /* the token at each position */
    int runs[SECTIONS];
};

/* A history's hash. Of 0 there is none. */
static uint64_t after(uint64_t hash, int32_t token) {
    return (hash ^ (uint64_t)(token + 1)) * 0x9E3779B97F4A7C15 + 0x1234567;
}

static float loss_of(uint64_t hash, int32_t target) {
    return (float)(after(hash, target) >> 44) * 0x1p-20f;
}

static int32_t best_of(uint64_t hash) {
    return (int32_t)(hash >> 40) % VOCAB;
}

static void upload(Executor *executor, int buffer, int64_t offset, const void *data,
                   int64_t bytes) {
    assert_int_equal(offset, 0);
    assert_true(bytes <= (int64_t)sizeof executor->buffers[buffer]);
    memcpy(executor->buffers[buffer], data, (size_t)bytes);
}

static bool download(Executor *executor, int buffer, int64_t offset, void *data, int64_t bytes,
                     Error *error) {
    (void)error;
    assert_int_equal(offset, 0);
    memcpy(data, executor->buffers[buffer], (size_t)bytes);
    return true;
}

static void prefill(Executor *executor, int64_t position) {
    assert_true(position + PREFILL <= CONTEXT);
    memcpy(executor->cache + position, executor->buffers[NEW_TOKENS], PREFILL * sizeof(int32_t));
    for (int64_t i = 0; position + i == 0; i++)
        assert_int_equal(executor->buffers[PREVIOUS][i], -1);
}

static void score_row(Executor *executor, int64_t position, int64_t row) {
    int32_t(*in)[ROWS] = executor->buffers;
    int32_t start = in[START][row], target = in[TARGETS][row], last = -1;
    assert_in_range(start, 0, row);
    uint64_t hash = 0;
    for (int64_t i = 0; i < position; i++) hash = after(hash, last = executor->cache[i]);
    for (int64_t i = start; i < row; i++) hash = after(hash, last = in[INPUT][i]);
    if (target >= 0) assert_int_equal(in[PREVIOUS][row], last);
    hash = after(hash, in[INPUT][row]);
    float loss = target < 0 ? NAN : loss_of(hash, target);
    memcpy(&in[LOSSES][row], &loss, sizeof loss);
    in[BEST][row] = best_of(hash);
}

static bool run(Executor *executor, SectionKind section, const StepScalars *scalars, Error *error) {
    (void)error;
    int64_t position = scalars->position;
    executor->runs[section]++;
    if (section == SECTION_PREFILL) {
        prefill(executor, position);
        return true;
    }
    assert_int_equal(section, SECTION_SCORE);
    for (int64_t row = 0; row < ROWS; row++) score_row(executor, position, row);
    for (int64_t row = 0; row < ROWS && executor->buffers[START][row] == 0; row++) {
        assert_true(position + row < CONTEXT);
        executor->cache[position + row] = executor->buffers[INPUT][row];
    }
    return true;
}

static const Backend backend = {.run = run, .upload = upload, .download = download};
static const Program program = {.context = CONTEXT,
                                .prefill_tokens = PREFILL,
                                .score_tokens = ROWS,
                                .new_tokens = NEW_TOKENS,
                                .previous_tokens = PREVIOUS,
                                .score_input = INPUT,
                                .score_start = START,
                                .score_targets = TARGETS,
                                .score_losses = LOSSES,
                                .score_best = BEST};

static size_t draw(uint64_t example, uint64_t index, size_t below) {
    return random_below(5, example, index, below);
}

/* Prompts of up to CONTEXT tokens: a prefix and up to six branches, some of a single token. */
static CoreExample random_example(uint64_t number) {
    CoreExample example = {.prefix = draw(number, 0, 40), .branch_count = 1 + draw(number, 1, 6)};
    size_t longest = draw(number, 2, 4) ? ROWS / 3 : CONTEXT - example.prefix,
           count = example.prefix;
    example.branches = calloc(example.branch_count, sizeof *example.branches);
    for (size_t i = 0; i < example.branch_count; i++) {
        CoreBranch *branch = &example.branches[i];
        branch->first = count;
        count += branch->count = 1 + draw(number, 10 + i, longest);
        branch->scored = 1 + draw(number, 20 + i, branch->count);
    }
    example.tokens = calloc(count, sizeof *example.tokens);
    for (size_t i = 0; i < count; i++) example.tokens[i] = (uint32_t)draw(number, 100 + i, VOCAB);
    example.gold = draw(number, 3, example.branch_count);
    return example;
}

/* What a branch's losses come to, token by token, and whether all its tokens are the most likely. */
static double expected_loss(const CoreExample *example, const CoreBranch *branch, bool *predicted) {
    uint64_t hash = 0;
    double nats = 0;
    for (size_t i = 0; i < example->prefix; i++) hash = after(hash, (int32_t)example->tokens[i]);
    *predicted = true;
    for (size_t i = 0; i < branch->count; i++) {
        int32_t token = (int32_t)example->tokens[branch->first + i];
        if (i >= branch->scored) {
            nats += (double)loss_of(hash, token);
            *predicted &= best_of(hash) == token;
        }
        hash = after(hash, token);
    }
    return nats / (double)(branch->count - branch->scored);
}

static void branches_see_what_they_should(void **state) {
    (void)state;
    static Executor executor;
    Error error;
    CoreScorer scorer;
    const Inference inference = {.backend = &backend, .program = &program, .executor = &executor};
    assert_done(core_scorer_start(&scorer, &inference, &error), error);
    for (uint64_t number = 0; number < EXAMPLES; number++) {
        CoreOutcome outcome;
        CoreExample example = random_example(number);
        CoreType type = number % 2 ? CORE_MULTIPLE_CHOICE : CORE_LANGUAGE_MODELING;
        assert_done(core_score(&scorer, type, &example, &outcome, &error), error);
        bool predicted = false, first_predicted = false;
        size_t answer = 0;
        for (size_t i = 0; i < example.branch_count; i++) {
            double loss = expected_loss(&example, &example.branches[i], &predicted);
            if (!i) first_predicted = predicted;
            if (isnan(loss))
                assert_true(isnan(outcome.losses[i]));
            else if (loss != outcome.losses[i])
                fail_msg("example %d: loss %g, not %g", (int)number, outcome.losses[i], loss);
            if (loss < outcome.losses[answer]) answer = i;
        }
        assert_int_equal(outcome.choices, example.branch_count);
        assert_int_equal(outcome.answer, answer);
        assert_int_equal(outcome.correct,
                         type == CORE_LANGUAGE_MODELING ? first_predicted : answer == example.gold);
        core_example_free(&example);
    }
    core_scorer_free(&scorer);
}

/* A prefix is computed once, choices go together, and what is left of a prefix goes with them where it
 * fits. */
static void runs_are_few(void **state) {
    (void)state;
    static const struct {
        size_t prefix, branches, count;
        int prefills, scores;
    } cases[] = {
        {0, 1, 25, 0, 1}, {0, 1, 26, 0, 2},  {16, 4, 7, 2, 1}, {20, 2, 5, 2, 1},
        {20, 4, 5, 3, 1}, {23, 1, 18, 2, 1}, {3, 2, 13, 1, 1}, {3, 5, 13, 1, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static uint32_t tokens[256];
        static Executor executor;
        Error error;
        CoreScorer scorer;
        CoreOutcome outcome;
        CoreBranch branches[8];
        const Inference inference = {
            .backend = &backend, .program = &program, .executor = &executor};
        CoreExample example = {.tokens = tokens,
                               .prefix = cases[i].prefix,
                               .branches = branches,
                               .branch_count = cases[i].branches};
        for (size_t j = 0; j < cases[i].branches; j++)
            branches[j] = (CoreBranch){cases[i].prefix, cases[i].count, 1};
        memset(executor.runs, 0, sizeof executor.runs);
        assert_done(core_scorer_start(&scorer, &inference, &error), error);
        assert_done(core_score(&scorer, CORE_SCHEMA, &example, &outcome, &error), error);
        assert_int_equal(executor.runs[SECTION_PREFILL], cases[i].prefills);
        assert_int_equal(executor.runs[SECTION_SCORE], cases[i].scores);
        core_scorer_free(&scorer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_see_what_they_should),
        cmocka_unit_test(runs_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
