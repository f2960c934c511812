/* CORE on small models, whose prompts are longer than their T: each choice's loss is that of the whole prompt
 * in one evaluation. */
#include "base/log.h"
#include "cpu/backend.h"
#include "eval/core.h"
#include "make_model.h"

#include <math.h>

enum { T = 48, EXAMPLES = 12 };

static const char *const words[] = {
    "the river", "the sea", "rain and rivers", "a r\xC3\xA9sum\xC3\xA9", "the sum of the rivers",
    "no notice", "calm"};
enum { WORDS = sizeof words / sizeof *words };

static const char *word(int i) {
    return words[i % WORDS];
}

static void write_lines(const char *directory, const char *name,
                        void (*append)(Bytes *out, int example)) {
    Error error;
    Bytes text = {0};
    char path[512];
    for (int i = 0; i < EXAMPLES; i++) append(&text, i);
    snprintf(path, sizeof path, "%s/eval_data/%s.jsonl", directory, name);
    assert_done(file_write(path, text.data, text.size, &error), error);
    bytes_free(&text);
}

static void append_choice(Bytes *out, int i) {
    Error error;
    assert_done(bytes_format(out, &error,
                             "{\"query\": \"When %s comes\", \"choices\": [\"%s\", \"%s rises\", "
                             "\"%s falls again, when the sun comes, and %s\"], \"gold\": %d}\n",
                             word(i), word(i + 1), word(i + 2), word(i + 3), word(i + 5), i % 3),
                error);
}

static void append_schema(Bytes *out, int i) {
    Error error;
    assert_done(bytes_format(out, &error,
                             "{\"context_options\": [\"So calm is %s\", \"So calm is %s\"], "
                             "\"continuation\": \"that %s takes no notice\", \"gold\": %d}\n",
                             word(i), word(i + 1), word(i + 3), i % 2),
                error);
}

static void append_text(Bytes *out, int i) {
    Error error;
    assert_done(bytes_format(out, &error,
                             "{\"context\": \"%s, said %s\", \"continuation\": \"%s\"}\n", word(i),
                             word(i + 2), word(i + 4)),
                error);
}

static const char *write_bundle(void) {
    static const char yaml[] =
        "icl_tasks:\n"
        "- {label: choice, dataset_uri: choice.jsonl, num_fewshot: [2], icl_task_type: "
        "multiple_choice, continuation_delimiter: \"\\nAnswer: \"}\n"
        "- {label: schema, dataset_uri: schema.jsonl, num_fewshot: [0], icl_task_type: schema}\n"
        "- {label: text, dataset_uri: text.jsonl, num_fewshot: [6], icl_task_type: "
        "language_modeling}\n";
    static const char csv[] = "Eval Task,Random baseline\nchoice,25\nschema,50\ntext,0\n";
    Error error;
    const char *directory = test_path("bundle");
    assert_done(directory_create(test_path("bundle/eval_data"), &error), error);
    assert_done(file_write(test_path("bundle/core.yaml"), yaml, strlen(yaml), &error), error);
    assert_done(file_write(test_path("bundle/eval_meta_data.csv"), csv, strlen(csv), &error),
                error);
    write_lines(directory, "choice", append_choice);
    write_lines(directory, "schema", append_schema);
    write_lines(directory, "text", append_text);
    return directory;
}

/* The mean loss of a branch's scored tokens in one row of evaluation. */
static double whole_loss(const LoadedModel *model, const CoreExample *example, size_t branch) {
    Error error;
    const Program *program = &model->program;
    const Backend *cpu = model->inference.backend;
    Executor *executor = model->inference.executor;
    const CoreBranch *rest = &example->branches[branch];
    size_t length = (size_t)program->T, count = example->prefix + rest->count;
    int32_t *tokens = calloc(length, 4), *targets = calloc(length, 4), *starts = calloc(length, 4);
    float *losses = calloc(length, sizeof *losses);
    for (size_t i = 0; i < count; i++)
        tokens[i] =
            (int32_t)example->tokens[i < example->prefix ? i : rest->first + i - example->prefix];
    for (size_t i = 0; i < length; i++)
        targets[i] = i + 1 >= example->prefix + rest->scored && i + 1 < count ? tokens[i + 1] : -1;
    int64_t bytes = (int64_t)length * 4;
    cpu->upload(executor, program->tokens, 0, tokens, bytes);
    cpu->upload(executor, program->targets, 0, targets, bytes);
    cpu->upload(executor, program->document_start, 0, starts, bytes);
    assert_done(cpu->run(executor, SECTION_EVALUATE, &(StepScalars){0}, &error), error);
    assert_done(cpu->download(executor, program->losses, 0, losses, bytes, &error), error);
    double nats = 0;
    for (size_t i = 0; i < length; i++) nats += targets[i] < 0 ? 0 : (double)losses[i];
    free(tokens);
    free(targets);
    free(starts);
    free(losses);
    return nats / (double)(rest->count - rest->scored);
}

typedef struct Seen {
    const LoadedModel *whole;
    size_t examples, correct;
} Seen;

static bool check_example(void *context, const CoreSet *set, size_t index,
                          const CoreOutcome *outcome, Error *error) {
    (void)error;
    Seen *seen = context;
    const CoreExample *example = &set->examples[index];
    size_t answer = 0;
    double losses[CORE_CHOICES_MAX];
    for (size_t i = 0; i < outcome->choices; i++) {
        losses[i] = whole_loss(seen->whole, example, i);
        if (!(fabs(outcome->losses[i] - losses[i]) <= 1e-5 * losses[i]))
            fail_msg("%s %zu: loss %.7f, in one row %.7f", set->task.label, index,
                     outcome->losses[i], losses[i]);
        if (losses[i] < losses[answer]) answer = i;
    }
    if (set->task.type != CORE_LANGUAGE_MODELING)
        assert_int_equal(outcome->correct, answer == example->gold);
    seen->examples++;
    seen->correct += outcome->correct;
    return true;
}

static void open_model(LoadedModel *model, const char *directory, InferenceSettings settings) {
    Error error;
    settings.backend = &backend_cpu;
    settings.storage = DTYPE_F32;
    assert_done(model_open(model, directory, &settings, &error), error);
}

static void check_model(const char *name, const ModelConfig *config) {
    Error error;
    Core core;
    CoreReport report;
    LoadedModel model, whole;
    const char *bundle = write_bundle(), *directory = save_model(name, config, true);
    Tokenizer *tokenizer = tokenizer_open(directory, &error);
    const CoreSettings settings = {.sequence_length = T};
    assert_done(tokenizer && core_open(&core, bundle, tokenizer, &settings, &error), error);
    assert_true(core.longest > 2 * T);
    /* Runs so small that prefixes, branches and single choices go in pieces. */
    open_model(&model, directory,
               (InferenceSettings){
                   .context = (int64_t)core.longest / 16 * 16 + 16, .prefill = 16, .score = 40});
    open_model(&whole, directory,
               (InferenceSettings){.sequence_length = (int64_t)core.longest, .micro_batch = 1});
    Seen seen = {.whole = &whole};
    const CoreWatcher watcher = {check_example, &seen};
    assert_done(core_evaluate(&core, &model.inference, &watcher, &report, &error), error);
    assert_int_equal(seen.examples, 3 * EXAMPLES);
    double sum = 0;
    size_t correct = 0;
    for (size_t i = 0; i < 3; i++) {
        double baseline = core.sets[i].task.baseline / 100;
        assert_true(report.tasks[i].accuracy == (double)report.tasks[i].correct / EXAMPLES);
        sum += (report.tasks[i].accuracy - baseline) / (1 - baseline);
        correct += report.tasks[i].correct;
    }
    assert_int_equal(correct, seen.correct);
    assert_true(fabs(report.core - sum / 3) < 1e-12);
    core_report_free(&report);
    model_close(&model);
    model_close(&whole);
    core_close(&core);
    tokenizer_free(tokenizer);
}

static void llama(void **state) {
    (void)state;
    ModelConfig config = small_model(T);
    check_model("llama", &config);
}

static void llama_with_windows(void **state) {
    (void)state;
    ModelConfig config = small_model(T);
    strcpy(config.window_pattern, "SL");
    config.window = 9;
    check_model("windows", &config);
}

static void nanochat(void **state) {
    (void)state;
    ModelConfig config = small_model(T);
    strcpy(config.architecture, "nanochat");
    strcpy(config.window_pattern, "SL");
    config.window = 9;
    config.kv_heads = config.heads;
    config.ffn = 4 * config.dim;
    check_model("nanochat", &config);
}

int main(void) {
    log_set_quiet(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama),
        cmocka_unit_test(llama_with_windows),
        cmocka_unit_test(nanochat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
