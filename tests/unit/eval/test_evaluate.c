/* Evaluation: the losses are those of the tokens one by one, and every byte of text counts once. */
#include <math.h>
#include <stdio.h>

#include "cpu/backend.h"
#include "eval/evaluate.h"
#include "eval/generate.h"
#include "make_model.h"

static void open_model(LoadedModel *model, const char *directory, InferenceSettings settings) {
    Error error;
    settings.backend = &backend_cpu;
    assert_done(model_open(model, directory, &settings, &error), error);
}

static const char *write_text(const char *name, const char *text, int times) {
    Error error;
    Bytes bytes = {0};
    for (int i = 0; i < times; i++)
        assert_done(bytes_append(&bytes, text, strlen(text), &error), error);
    const char *path = test_path(name);
    assert_done(file_write(path, bytes.data, bytes.size, &error), error);
    bytes_free(&bytes);
    return path;
}

static Evaluation evaluate_file(const LoadedModel *model, const char *path, const char *split_on) {
    Error error;
    Evaluation result = {0};
    const ReaderSettings settings = {.split_on = split_on};
    Reader *reader = reader_open(&path, 1, &settings, &error);
    assert_done(reader && evaluate_text(&model->inference, reader, &result, &error), error);
    reader_free(reader);
    return result;
}

/* Nats of all tokens of a document, from the decode section's logits. */
static double nats_one_by_one(const LoadedModel *model, const Tokens *tokens) {
    Error error;
    const Inference *inference = &model->inference;
    double nats = 0;
    for (size_t i = 0; i + 1 < tokens->count; i++) {
        float logits[VOCAB];
        double sum = 0;
        inference->backend->upload(inference->executor, inference->program->new_tokens, 0,
                                   &tokens->ids[i], sizeof tokens->ids[i]);
        assert_done(inference->backend->run(inference->executor, SECTION_DECODE,
                                            &(StepScalars){.position = (int64_t)i}, &error),
                    error);
        assert_done(inference->backend->download(inference->executor, inference->program->logits, 0,
                                                 logits, sizeof logits, &error),
                    error);
        for (int v = 0; v < VOCAB; v++) sum += exp((double)logits[v]);
        nats += log(sum) - (double)logits[tokens->ids[i + 1]];
    }
    return nats;
}

static void test_equals_decoding_one_by_one(void **state) {
    (void)state;
    Error error;
    enum { T = 512 };
    ModelConfig config = small_model(T);
    LoadedModel model;
    open_model(&model, save_model("one by one", &config, true),
               (InferenceSettings){.micro_batch = 2, .context = T, .storage = DTYPE_F32});
    Tokens tokens = {0};
    size_t size = strlen(sample_text);
    assert_done(prompt_encode(model.tokenizer, sample_text, size, &tokens, &error), error);
    assert_true(tokens.count > 50 && tokens.count <= T);
    double nats = nats_one_by_one(&model, &tokens);
    Evaluation result = evaluate_file(&model, write_text("once.txt", sample_text, 1), NULL);
    assert_int_equal(result.tokens, tokens.count - 1);
    assert_int_equal(result.bytes, size);
    assert_true(fabs(result.loss * (double)result.tokens / nats - 1) < 1e-5);
    assert_true(fabs(result.bpb * log(2) * (double)size / nats - 1) < 1e-5);
    tokens_free(&tokens);
    model_close(&model);
}

/* Where layers look back less than the rows repeat, cutting a text into rows must change nothing.
 */
static void test_cuts_lose_no_context(void **state) {
    (void)state;
    enum { TEXTS = 3 };
    ModelConfig config = small_model(1024);
    strcpy(config.window_pattern, "S");
    config.window = 4; /* two layers see 8 tokens back */
    const char *directory = save_model("windows", &config, true);
    const char *texts[TEXTS] = {write_text("long.txt", sample_text, 4), NULL,
                                write_text("once.txt", sample_text, 1)};
    const char *const separators[TEXTS] = {NULL, "\\n", " "};
    texts[1] = texts[0];
    Evaluation results[3][TEXTS];
    const int64_t lengths[3] = {1024, 16, 17};
    for (int i = 0; i < 3; i++) {
        LoadedModel model;
        open_model(&model, directory,
                   (InferenceSettings){
                       .sequence_length = lengths[i], .micro_batch = 3, .storage = DTYPE_F32});
        for (int j = 0; j < TEXTS; j++) {
            Evaluation *result = &results[i][j], *whole = &results[0][j];
            *result = evaluate_file(&model, texts[j], separators[j]);
            assert_int_equal(result->tokens, whole->tokens);
            assert_int_equal(result->bytes, whole->bytes);
            if (fabs(result->loss / whole->loss - 1) > 1e-5)
                fail_msg("text %d with T = %d: loss %.9g, not %.9g", j, (int)lengths[i],
                         result->loss, whole->loss);
        }
        model_close(&model);
    }
    assert_int_equal(results[0][0].bytes, 4 * strlen(sample_text));
}

/* A directory of llm.c shards: both splits hold the text `times` times, each after a separator. */
static const char *write_dataset(const char *name, const Tokenizer *tokenizer, int times) {
    Error error;
    Tokens tokens = {0};
    for (int i = 0; i < times; i++)
        assert_done(prompt_encode(tokenizer, sample_text, strlen(sample_text), &tokens, &error),
                    error);
    size_t size = 1024 + 2 * tokens.count;
    uint8_t *shard = calloc(size, 1);
    const int32_t header[3] = {20240520, 1, (int32_t)tokens.count};
    memcpy(shard, header, sizeof header);
    for (size_t i = 0; i < tokens.count; i++)
        memcpy(shard + 1024 + 2 * i, &(uint16_t){(uint16_t)tokens.ids[i]}, 2);
    const char *directory = test_path(name), *const files[] = {"text_train_000000.bin",
                                                               "text_val_000000.bin"};
    assert_done(directory_create(directory, &error), error);
    for (int i = 0; i < 2; i++) {
        char *path = path_join(directory, files[i], &error);
        assert_done(file_write(path, shard, size, &error), error);
        free(path);
    }
    free(shard);
    tokens_free(&tokens);
    return directory;
}

static Evaluation evaluate_validation(const LoadedModel *model, const char *directory,
                                      int64_t tokens) {
    Error error;
    Evaluation result = {0};
    Dataset *dataset = dataset_open(directory, &error);
    assert_done(dataset && evaluate_dataset(&model->inference, dataset, SPLIT_VALIDATION,
                                            PACKING_STREAM, tokens, false, &result, &error),
                error);
    dataset_free(dataset);
    return result;
}

static void test_dataset_equals_text(void **state) {
    (void)state;
    ModelConfig config = small_model(512);
    LoadedModel model;
    open_model(&model, save_model("as text", &config, true),
               (InferenceSettings){.micro_batch = 2, .storage = DTYPE_F32});
    Evaluation text = evaluate_file(&model, write_text("once.txt", sample_text, 1), NULL);
    Evaluation data = evaluate_validation(&model, write_dataset("once", model.tokenizer, 1), 0);
    assert_int_equal(data.tokens, text.tokens);
    assert_int_equal(data.bytes, text.bytes);
    assert_true(data.loss == text.loss && data.bpb == text.bpb);
    model_close(&model);
}

/* Separators between documents count in the loss and stand for no bytes. */
static void test_rows_counted_do_not_depend_on_the_batch(void **state) {
    (void)state;
    enum { T = 16, TIMES = 5 };
    ModelConfig config = small_model(T);
    const char *directory = save_model("rows", &config, true);
    Evaluation results[2][2];
    for (int i = 0; i < 2; i++) {
        LoadedModel model;
        open_model(&model, directory,
                   (InferenceSettings){.micro_batch = i ? 4 : 1, .storage = DTYPE_F32});
        const char *data = write_dataset("many", model.tokenizer, TIMES);
        results[i][0] = evaluate_validation(&model, data, 0);
        results[i][1] = evaluate_validation(&model, data, 5 * T + 1);
        assert_int_equal(results[i][0].bytes, TIMES * strlen(sample_text));
        assert_int_equal(results[i][1].tokens, 6 * T);
        model_close(&model);
    }
    for (int j = 0; j < 2; j++) {
        assert_int_equal(results[0][j].tokens, results[1][j].tokens);
        assert_int_equal(results[0][j].bytes, results[1][j].bytes);
        assert_true(fabs(results[0][j].loss / results[1][j].loss - 1) < 1e-6);
    }
}

static void test_rows_of_one_token(void **state) {
    (void)state;
    ModelConfig config = small_model(64);
    LoadedModel model;
    open_model(&model, save_model("single", &config, true),
               (InferenceSettings){.sequence_length = 1, .micro_batch = 5, .storage = DTYPE_F32});
    Evaluation result = evaluate_file(&model, write_text("once.txt", sample_text, 1), NULL);
    assert_int_equal(result.bytes, strlen(sample_text));
    model_close(&model);
}

static void test_what_cannot_be_evaluated(void **state) {
    (void)state;
    Error error;
    Evaluation result = {0};
    ModelConfig config = small_model(64);
    LoadedModel model;
    open_model(&model, save_model("no tokenizer", &config, false),
               (InferenceSettings){.micro_batch = -1, .storage = DTYPE_F32});
    const char *path = write_text("once.txt", sample_text, 1);
    Reader *reader = reader_open(&path, 1, &(ReaderSettings){0}, &error);
    assert_done(reader != NULL, error);
    assert_fails_with(evaluate_text(&model.inference, reader, &result, &error), error,
                      "no tokenizer.json");
    reader_free(reader);
    model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_decoding_one_by_one),
        cmocka_unit_test(test_cuts_lose_no_context),
        cmocka_unit_test(test_dataset_equals_text),
        cmocka_unit_test(test_rows_counted_do_not_depend_on_the_batch),
        cmocka_unit_test(test_rows_of_one_token),
        cmocka_unit_test(test_what_cannot_be_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
