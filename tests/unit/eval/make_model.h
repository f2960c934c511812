/* A small llama with random weights and a tokenizer, as a checkpoint directory. */
#ifndef HEARTH_TESTS_MAKE_MODEL_H
#define HEARTH_TESTS_MAKE_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "eval/inference.h"
#include "files/safetensors.h"
#include "support.h"
#include "text/trainer.h"

enum { VOCAB = 280 };

/* Text with words that come again, and some that are not ASCII. */
static const char sample_text[] =
    "The r\xC3\xA9sum\xC3\xA9 of the river is the sea, and the sea is the sum of the rivers.\n"
    "When the rain comes the river rises; when the sun comes the river falls. The sea takes no "
    "notice.\n"
    "\"Why,\" said the r\xC3\xA9sum\xC3\xA9, \"is the sea so calm?\" \xE2\x80\x94 and the rain "
    "came again.\n";

static inline ModelConfig small_model(int64_t T) {
    return (ModelConfig){.architecture = "llama",
                         .layers = 2,
                         .dim = 32,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 8,
                         .ffn = 48,
                         .vocab = VOCAB,
                         .sequence_length = T,
                         .rope_theta = 10000,
                         .norm_eps = 1e-5,
                         .init_std = 0.02,
                         .window_pattern = "L",
                         .bos_id = -1,
                         .eos_id = -1};
}

static inline void save_tokenizer(const char *directory) {
    Error error;
    const char *const specials[] = {"<|endoftext|>"};
    Trainer *trainer = trainer_open("gpt2", &error);
    assert_done(trainer && trainer_add(trainer, sample_text, strlen(sample_text), &error) &&
                    trainer_end_text(trainer, &error),
                error);
    Tokenizer *tokenizer = trainer_finish(trainer, VOCAB, specials, 1, NULL, NULL, &error);
    assert_done(tokenizer && tokenizer_save(tokenizer, directory, &error), error);
    tokenizer_free(tokenizer);
    trainer_free(trainer);
}

static inline void save_weights(const char *directory, const ModelConfig *config) {
    Error error;
    Program program;
    program_init(&program, DTYPE_F32);
    model_find(config, &error)->declare(&program, config);
    Tensor *tensors = calloc((size_t)program.parameter_count, sizeof *tensors);
    for (int i = 0; i < program.parameter_count; i++) {
        const Parameter *parameter = &program.parameters[i];
        const Weight *weight = &program.weights[parameter->weight];
        int64_t count = parameter->rows * weight->columns;
        float *values = malloc((size_t)count * sizeof *values);
        for (int64_t j = 0; j < count; j++)
            values[j] = random_uniform(7, (uint64_t)i, (uint64_t)j) -
                        (role_is_matrix(weight->role) ? 0.5f : -0.5f);
        tensors[i] = (Tensor){
            .name = program.parameters[i].name,
            .type = TENSOR_F32,
            .rank = role_is_matrix(weight->role) ? 2 : 1,
            .shape = {role_is_matrix(weight->role) ? parameter->rows : count, weight->columns},
            .data = values,
            .bytes = (size_t)count * sizeof *values};
    }
    char *path = path_join(directory, "model.safetensors", &error);
    assert_done(safetensors_write(path, tensors, program.parameter_count,
                                  (const char *const[]){NULL}, NULL, &error),
                error);
    for (int i = 0; i < program.parameter_count; i++) free((void *)(uintptr_t)tensors[i].data);
    free(tensors);
    free(path);
    program_free(&program);
}

/* Returns the directory. */
static inline const char *save_model(const char *name, const ModelConfig *config,
                                     bool with_tokenizer) {
    Error error;
    const char *directory = test_path(name);
    assert_done(directory_create(directory, &error), error);
    json_t *json = model_config_to_json(config, "float32", &error);
    char *path = path_join(directory, "config.json", &error);
    assert_done(json && json_write_file(path, json, &error), error);
    json_decref(json);
    free(path);
    if (with_tokenizer) save_tokenizer(directory);
    save_weights(directory, config);
    return directory;
}

#endif
